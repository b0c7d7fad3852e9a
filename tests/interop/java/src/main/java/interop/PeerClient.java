package interop;

import Zeze.Builtin.Game.Online.Login;
import Zeze.Builtin.LinkdBase.ReportError;
import Zeze.Config;
import Zeze.Net.AsyncSocket;
import Zeze.Net.Connector;
import Zeze.Net.Service;
import Zeze.Services.HandshakeClient;
import Zeze.Transaction.DispatchMode;
import Zeze.Transaction.TransactionLevel;
import Zeze.Util.Task;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/**
 * Java clients of a gateway, one connection for each role. It says "in ROLE" when a role is logged
 * in, "heard ROLE FROM NUMBER", "kicked ROLE CODE" and "closed ROLE" as these happen. When there is a
 * file talk-NAME, each role says a word to each of the roles in it: "said ROLE SERVER CODE" is the
 * answer. When there is a file kick-NAME, each of them asks for its kick.
 */
public final class PeerClient {
  private final long role;
  private final AsyncSocket connection;

  private PeerClient(int port, long role) throws Exception {
    this.role = role;
    HandshakeClient service =
        new HandshakeClient("Client" + role, new Config()) {
          @Override
          public void OnSocketClose(AsyncSocket socket, Throwable why) throws Exception {
            Common.say("closed " + role);
            super.OnSocketClose(socket, why);
          }
        };
    add(service, new Service.ProtocolFactoryHandle<>(Auth::new, null, TransactionLevel.None));
    add(service, new Service.ProtocolFactoryHandle<>(Login::new, null, TransactionLevel.None));
    add(service, new Service.ProtocolFactoryHandle<>(Say::new, null, TransactionLevel.None));
    add(
        service,
        new Service.ProtocolFactoryHandle<>(
            Heard::new,
            heard -> {
              Common.say(
                  "heard "
                      + role
                      + " "
                      + heard.Argument.getLinksid()
                      + " "
                      + heard.Argument.getCode());
              return 0;
            },
            TransactionLevel.None,
            DispatchMode.Direct));
    add(
        service,
        new Service.ProtocolFactoryHandle<>(
            ReportError::new,
            report -> {
              Common.say("kicked " + role + " " + report.Argument.getCode());
              return 0;
            },
            TransactionLevel.None,
            DispatchMode.Direct));
    Connector connector = new Connector("127.0.0.1", port, false);
    service.getConfig().addConnector(connector);
    service.start();
    connection = connector.WaitReady();
    Auth auth = new Auth();
    auth.Argument.account = "account" + role;
    auth.SendForWait(connection, 10_000).await();
    check("Auth", auth.getResultCode());
    Login login = new Login();
    login.Argument.setRoleId(role);
    login.SendForWait(connection, 30_000).await();
    check("Login", login.getResultCode());
    Common.say("in " + role);
  }

  private static void add(Service service, Service.ProtocolFactoryHandle<?> handle) {
    service.AddFactoryHandle(handle.TypeId, handle);
  }

  private static void check(String what, long code) {
    if (code != 0) {
      throw new IllegalStateException(what + " was answered " + code);
    }
  }

  private void talk(long to, String words) throws Exception {
    Say say = new Say();
    say.Argument.setLinksid(to);
    say.Argument.setCode((int) (role * 1000 + to));
    say.Argument.setDesc(words);
    long code;
    try {
      say.SendForWait(connection, 30_000).await();
      code = say.getResultCode();
    } catch (Throwable failure) {
      code = -1;
    }
    Common.say("said " + role + " " + say.Result.getControl() + " " + code);
  }

  public static void main(String[] arguments) throws Exception {
    Map<String, String> options = Common.options(arguments);
    Task.tryInitThreadPool();
    List<PeerClient> clients = new ArrayList<>();
    for (String role : options.get("--roles").split(",")) {
      clients.add(new PeerClient(Integer.parseInt(options.get("--linkd")), Long.parseLong(role)));
    }
    Path directory = Path.of(options.get("--directory"));
    Common.say("ready");
    Path talk = directory.resolve("talk-" + options.get("--name"));
    Path kick = directory.resolve("kick-" + options.get("--name"));
    await(talk);
    for (String to : Files.readString(talk).trim().split(",")) {
      for (PeerClient client : clients) {
        client.talk(Long.parseLong(to), "hello");
      }
    }
    Common.say("talked");
    await(kick);
    for (PeerClient client : clients) {
      client.talk(0, "kick me");
    }
    Common.say("done");
    Thread.currentThread().join();
  }

  private static void await(Path file) throws Exception {
    while (!Files.exists(file)) {
      Thread.sleep(20);
    }
  }
}
