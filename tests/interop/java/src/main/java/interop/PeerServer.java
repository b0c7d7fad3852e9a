package interop;

import Zeze.Application;
import Zeze.Builtin.AutoKey.BAutoKey;
import Zeze.Builtin.AutoKey.BSeedKey;
import Zeze.Builtin.AutoKey.tAutoKeys;
import Zeze.Builtin.Collections.Queue.BQueueNode;
import Zeze.Builtin.Collections.Queue.BQueueNodeKey;
import Zeze.Builtin.Collections.Queue.BQueueNodeValue;
import Zeze.Builtin.Collections.Queue.tQueueNodes;
import Zeze.Config;
import Zeze.Services.ServiceManager.BEditService;
import Zeze.Services.ServiceManager.BServiceInfo;
import Zeze.Util.FuncLong;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.atomic.AtomicLong;

/**
 * The Java server of the mixed cluster. What it takes and what it says is described in
 * interop_server.cc. The tables are two that every Java server opens for itself.
 */
public final class PeerServer {
  private static final int KEYS = 40;

  private final int id;
  private final int threads;
  private final long transactions;
  private final Path directory;
  private final Application app;
  private final tAutoKeys numbers;
  private final tQueueNodes lists;
  private final AtomicLong started = new AtomicLong();
  private final AtomicLong added = new AtomicLong();
  private final AtomicLong failed = new AtomicLong();

  private PeerServer(Map<String, String> options) throws Exception {
    id = Integer.parseInt(options.get("--id"));
    threads = Integer.parseInt(options.get("--threads"));
    transactions = Long.parseLong(options.get("--transactions"));
    directory = Path.of(options.get("--directory"));
    Path file = directory.resolve("peer-" + id + ".xml");
    Files.writeString(file, Common.server(options, ""));
    app = new Application("interop", Config.load(file.toString()));
    app.start();
    numbers = (tAutoKeys) app.getTable("Zeze_Builtin_AutoKey_tAutoKeys");
    lists = (tQueueNodes) app.getTable("Zeze_Builtin_Collections_Queue_tQueueNodes");
    BEditService edit = new BEditService();
    edit.getAdd().add(new BServiceInfo("Interop", String.valueOf(id), 0, "127.0.0.1", 7000 + id));
    app.getServiceManager().editService(edit);
    Common.say("unfenced");
    Common.say("ready");
  }

  private void run(String name, FuncLong body) throws Exception {
    while (app.newProcedure(body, name).call() != 0) {
      failed.incrementAndGet();
      Thread.sleep(20);
    }
  }

  private BAutoKey number(String name, int key) {
    return numbers.getOrAdd(new BSeedKey(key, name));
  }

  private void work() throws Exception {
    List<Thread> running = new ArrayList<>();
    for (int t = 0; t < threads; ++t) {
      int thread = t;
      running.add(Common.start(() -> runThread(thread)));
    }
    for (Thread one : running) {
      one.join();
    }
    Common.say("added " + added.get());
    Common.say("batch " + failed.get());
  }

  private void runThread(int thread) throws Exception {
    Random random = new Random(id * 100L + thread);
    long appended = 0;
    while (started.getAndIncrement() < transactions) {
      int key = random.nextInt(KEYS);
      switch (random.nextInt(5)) {
        case 0, 1 -> {
          count(key);
          added.incrementAndGet();
        }
        case 2 -> trade(key, (key + 1 + random.nextInt(KEYS - 1)) % KEYS, random.nextInt(100));
        default -> append(key, ((long) id << 48) | ((long) thread << 40) | ++appended);
      }
    }
    Common.say("appended " + thread + " " + appended);
  }

  private void count(int key) throws Exception {
    run(
        "count",
        () -> {
          BAutoKey counter = number("interop.counter", key);
          counter.setNextId(counter.getNextId() + 1);
          return 0;
        });
  }

  private void trade(int from, int to, int amount) throws Exception {
    run(
        "trade",
        () -> {
          BAutoKey giver = number("interop.account", from);
          BAutoKey taker = number("interop.account", to);
          giver.setNextId(giver.getNextId() - amount);
          taker.setNextId(taker.getNextId() + amount);
          return 0;
        });
  }

  private void append(int key, long element) throws Exception {
    run(
        "append",
        () -> {
          BQueueNodeValue value = new BQueueNodeValue();
          value.setTimestamp(element);
          lists.getOrAdd(new BQueueNodeKey("interop.list", key)).getValues().add(value);
          return 0;
        });
  }

  private void look() throws Exception {
    long[] sums = new long[3];
    run(
        "look",
        () -> {
          sums[0] = sums[1] = sums[2] = 0;
          for (int key = 0; key < KEYS; ++key) {
            BAutoKey counter = numbers.get(new BSeedKey(key, "interop.counter"));
            BAutoKey account = numbers.get(new BSeedKey(key, "interop.account"));
            BQueueNode list = lists.get(new BQueueNodeKey("interop.list", key));
            sums[0] += counter == null ? 0 : counter.getNextId();
            sums[1] += account == null ? 0 : account.getNextId();
            sums[2] += list == null ? 0 : list.getValues().size();
          }
          return 0;
        });
    Common.say("saw " + sums[0] + " " + sums[1] + " " + sums[2]);
  }

  private void obey() throws Exception {
    boolean checked = false;
    boolean repeated = false;
    while (!Files.exists(directory.resolve("stop-" + id))) {
      if (!checked && Files.exists(directory.resolve("check"))) {
        checked = true;
        look();
      }
      if (!repeated && Files.exists(directory.resolve("again"))) {
        repeated = true;
        for (int key = 0; key < KEYS; ++key) {
          count(key);
        }
        Common.say("again " + KEYS);
      }
      Thread.sleep(20);
    }
    // It gives its rights back before it saves for the last time: nothing may be left to save.
    app.checkpointRun();
    app.stop();
    Common.say("stopped");
  }

  public static void main(String[] arguments) throws Exception {
    PeerServer server = new PeerServer(Common.options(arguments));
    server.work();
    server.obey();
    System.exit(0);
  }
}
