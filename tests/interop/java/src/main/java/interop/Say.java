package interop;

import Zeze.Builtin.Provider.BKick;
import Zeze.Net.Rpc;

/**
 * A client asks its server to send words to a role: linksid is the role, code a number, desc the
 * words. "kick me" ends the client's own connection instead. The answer says in control which server
 * it was.
 */
public final class Say extends Rpc<BKick, BKick> {
  static final int MODULE = 7;
  static final int PROTOCOL = 1;

  public Say() {
    Argument = new BKick();
    Result = new BKick();
  }

  @Override
  public int getModuleId() {
    return MODULE;
  }

  @Override
  public int getProtocolId() {
    return PROTOCOL;
  }
}
