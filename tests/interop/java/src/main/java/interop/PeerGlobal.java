package interop;

import Zeze.Services.GlobalCacheManagerAsyncServer;

/** The Java Global on a free port: says "listening on port N", and serves until it is killed. */
public final class PeerGlobal {
  private PeerGlobal() {}

  public static void main(String[] arguments) throws Exception {
    int port = Common.freePort();
    Common.serve(
        port,
        () ->
            GlobalCacheManagerAsyncServer.main(
                new String[] {"-ip", "127.0.0.1", "-port", String.valueOf(port)}));
  }
}
