package interop;

import Zeze.Net.Binary;
import Zeze.Net.Rpc;
import Zeze.Serialize.ByteBuffer;
import Zeze.Serialize.IByteBuffer;
import Zeze.Serialize.Serializable;
import Zeze.Transaction.EmptyBean;

/** How clients of `zeze linkd` say who they are. With --insecure-accounts the token is the account. */
public final class Auth extends Rpc<Auth.Token, EmptyBean> {
  static final int MODULE = 11900;
  static final int PROTOCOL = Zeze.Transaction.Bean.hash32("Zeze.Builtin.LinkdAuth.Auth");

  static final class Token implements Serializable {
    String account = "";

    @Override
    public void encode(ByteBuffer out) {
      out.WriteTag(0, 1, ByteBuffer.BYTES);
      out.WriteBinary(new Binary(account));
      out.WriteByte(0);
    }

    @Override
    public void decode(IByteBuffer in) {
      int tag = in.ReadByte();
      int id = in.ReadTagSize(tag);
      if (id == 1) {
        account = in.ReadBinary(tag).toString(java.nio.charset.StandardCharsets.UTF_8);
        id += in.ReadTagSize(tag = in.ReadByte());
      }
      while (tag != 0) {
        in.SkipUnknownField(tag);
        id += in.ReadTagSize(tag = in.ReadByte());
      }
    }
  }

  public Auth() {
    Argument = new Token();
    Result = EmptyBean.instance;
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
