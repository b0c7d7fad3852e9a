package interop;

import Zeze.Services.GlobalCacheManagerAsyncServer;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;

/** The Java Global on a free port: says "listening on port N", and serves until it is killed. */
public final class PeerGlobal {
  private PeerGlobal() {}

  public static void main(String[] arguments) throws Exception {
    int port = freePort();
    Thread server =
        new Thread(
            () -> {
              try {
                GlobalCacheManagerAsyncServer.main(
                    new String[] {"-ip", "127.0.0.1", "-port", String.valueOf(port)});
              } catch (Throwable failure) {
                failure.printStackTrace();
                Runtime.getRuntime().halt(1);
              }
            });
    server.start();
    while (!answers(port)) {
      Thread.sleep(50);
    }
    System.out.println("listening on port " + port);
    System.out.flush();
    server.join();
  }

  private static int freePort() throws IOException {
    try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
      return socket.getLocalPort();
    }
  }

  private static boolean answers(int port) {
    try (Socket socket = new Socket(InetAddress.getLoopbackAddress(), port)) {
      return socket.isConnected();
    } catch (IOException refused) {
      return false;
    }
  }
}
