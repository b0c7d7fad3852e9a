package interop;

import Zeze.Services.ServiceManagerServer;

/** The Java service manager on a free port; its data are in the working directory. */
public final class PeerRegistry {
  private PeerRegistry() {}

  public static void main(String[] arguments) throws Exception {
    int port = Common.freePort();
    Common.serve(
        port,
        () ->
            ServiceManagerServer.main(
                new String[] {"-ip", "127.0.0.1", "-port", String.valueOf(port)}));
  }
}
