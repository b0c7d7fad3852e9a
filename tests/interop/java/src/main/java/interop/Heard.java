package interop;

import Zeze.Builtin.Provider.BKick;
import Zeze.Net.Protocol;

/** The words of Say as they reach a role: linksid is the role that said them. */
public final class Heard extends Protocol<BKick> {
  static final int PROTOCOL = 2;

  public Heard() {
    Argument = new BKick();
  }

  @Override
  public int getModuleId() {
    return Say.MODULE;
  }

  @Override
  public int getProtocolId() {
    return PROTOCOL;
  }
}
