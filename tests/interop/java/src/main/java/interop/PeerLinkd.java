package interop;

import Zeze.AppBase;
import Zeze.Application;
import Zeze.Arch.LinkdApp;
import Zeze.Arch.LinkdProvider;
import Zeze.Arch.LinkdProviderService;
import Zeze.Arch.LinkdService;
import Zeze.Arch.LinkdUserSession;
import Zeze.Arch.LoadConfig;
import Zeze.Config;
import Zeze.Net.Service;
import Zeze.Transaction.DispatchMode;
import Zeze.Transaction.TransactionLevel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;

/** The Java gateway. It believes every account that a client names. */
public final class PeerLinkd extends AppBase {
  private final Application zeze;

  private PeerLinkd(Config config) throws Exception {
    zeze = new Application("linkd", config);
  }

  @Override
  public Application getZeze() {
    return zeze;
  }

  public static void main(String[] arguments) throws Exception {
    Map<String, String> options = Common.options(arguments);
    int port = Common.freePort();
    Path file = Path.of("peer-linkd.xml");
    Files.writeString(
        file,
        """
        <?xml version="1.0" encoding="utf-8"?>
        <zeze ServerId="-1" CheckpointPeriod="0">
          <DatabaseConf Name="" DatabaseType="Memory" DatabaseUrl=""/>
          <ServiceConf Name="Clients"><Acceptor Ip="127.0.0.1" Port="%d"/></ServiceConf>
          <ServiceConf Name="Providers"><Acceptor Ip="127.0.0.1" Port="%d"/></ServiceConf>
        %s
        </zeze>
        """
            .formatted(port, Common.freePort(), Common.registry(options)));
    PeerLinkd app = new PeerLinkd(Config.load(file.toString()));
    LinkdService clients = new LinkdService("Clients", app.zeze);
    LinkdProviderService providers = new LinkdProviderService("Providers", app.zeze);
    LinkdApp linkd =
        new LinkdApp(
            "Game.Linkd", app.zeze, new LinkdProvider(), providers, clients, new LoadConfig());
    app.zeze.initialize(app);
    Auth sample = new Auth();
    clients.AddFactoryHandle(
        sample.getTypeId(),
        new Service.ProtocolFactoryHandle<>(
            Auth::new,
            auth -> {
              LinkdUserSession session = (LinkdUserSession) auth.getSender().getUserState();
              session.setAccount(auth.Argument.account);
              session.setAuthed();
              auth.SendResult();
              return 0;
            },
            TransactionLevel.None,
            DispatchMode.Direct));
    app.zeze.start();
    clients.start();
    providers.start();
    linkd.registerService(null);
    Common.say("listening on port " + port);
    Thread.currentThread().join();
  }
}
