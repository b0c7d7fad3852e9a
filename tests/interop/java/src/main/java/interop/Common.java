package interop;

import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.URI;
import java.util.HashMap;
import java.util.Map;

/** What the programs of this test share. */
final class Common {
  private Common() {}

  /** "--id 1 --global 5002" as a map. */
  static Map<String, String> options(String[] arguments) {
    Map<String, String> options = new HashMap<>();
    for (int i = 0; i + 1 < arguments.length; i += 2) {
      options.put(arguments[i], arguments[i + 1]);
    }
    return options;
  }

  static synchronized void say(String line) {
    System.out.println(line);
    System.out.flush();
  }

  static int freePort() throws IOException {
    try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
      return socket.getLocalPort();
    }
  }

  interface Body {
    void run() throws Exception;
  }

  /** A failure of the body ends the program. */
  static Thread start(Body body) {
    Thread thread =
        new Thread(
            () -> {
              try {
                body.run();
              } catch (Throwable failure) {
                failure.printStackTrace();
                Runtime.getRuntime().halt(1);
              }
            });
    thread.start();
    return thread;
  }

  /** Runs a program of the peer that listens on this port, and says when it does. */
  static void serve(int port, Body program) throws Exception {
    Thread server = start(program);
    while (!answers(port)) {
      Thread.sleep(50);
    }
    say("listening on port " + port);
    server.join();
  }

  private static boolean answers(int port) {
    try (Socket socket = new Socket(InetAddress.getLoopbackAddress(), port)) {
      return socket.isConnected();
    } catch (IOException refused) {
      return false;
    }
  }

  /** The part of a configuration that says where the service manager is. */
  static String registry(Map<String, String> options) {
    return """
        <ServiceConf Name="Zeze.Services.ServiceManager.Agent">
          <Connector HostNameOrAddress="127.0.0.1" Port="%s"/>
        </ServiceConf>
        """
        .formatted(options.get("--registry"));
  }

  /** The configuration of a server with a database; more ServiceConfs follow. */
  static String server(Map<String, String> options, String more) {
    return """
        <?xml version="1.0" encoding="utf-8"?>
        <zeze ServerId="%s" GlobalCacheManagerHostNameOrAddress="127.0.0.1"
              GlobalCacheManagerPort="%s" CheckpointPeriod="500">
        %s%s%s
        </zeze>
        """
        .formatted(
            options.get("--id"),
            options.get("--global"),
            database(options.get("--database")),
            registry(options),
            more);
  }

  /**
   * The address of a database as the peer wants it: "mysql://root@127.0.0.1:5544/t1" becomes
   * "jdbc:mysql://127.0.0.1:5544/t1?user=root". What follows a question mark is kept.
   */
  private static String database(String address) {
    URI uri = URI.create(address);
    boolean postgres = uri.getScheme().equals("postgresql");
    String more = uri.getQuery() == null ? "" : "&amp;" + uri.getQuery().replace("&", "&amp;");
    return """
        <DatabaseConf Name="" DatabaseType="%s" DatabaseUrl="jdbc:%s://%s:%d%s?user=%s%s"/>
        """
        .formatted(
            postgres ? "PostgreSQL" : "MySql",
            postgres ? "postgresql" : "mysql",
            uri.getHost(),
            uri.getPort(),
            uri.getPath(),
            uri.getUserInfo(),
            more);
  }
}
