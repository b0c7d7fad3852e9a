package interop;

import Zeze.AppBase;
import Zeze.Application;
import Zeze.Arch.LoadConfig;
import Zeze.Arch.ProviderApp;
import Zeze.Arch.ProviderDirectService;
import Zeze.Arch.ProviderModuleBinds;
import Zeze.Arch.ProviderService;
import Zeze.Arch.ProviderUserSession;
import Zeze.Builtin.Provider.BKick;
import Zeze.Config;
import Zeze.Game.ProviderDirectWithTransmit;
import Zeze.Game.ProviderWithOnline;
import Zeze.IModule;
import Zeze.Net.Service;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;

/** A Java server with logins of roles, which sends their words to each other (Say). */
public final class PeerProvider extends AppBase {
  private final int id;
  private final Application zeze;
  private final ProviderWithOnline provider = new ProviderWithOnline();

  private PeerProvider(Map<String, String> options) throws Exception {
    id = Integer.parseInt(options.get("--id"));
    Path file = Path.of("peer-provider.xml");
    Files.writeString(
        file,
        Common.server(
            options,
            """
            <ServiceConf Name="Server"/>
            <ServiceConf Name="ServerDirect"><Acceptor Ip="127.0.0.1" Port="%d"/></ServiceConf>
            """
                .formatted(Common.freePort())));
    zeze = new Application("provider", Config.load(file.toString()));
    ProviderApp app =
        new ProviderApp(
            zeze,
            provider,
            new ProviderService("Server", zeze),
            "Game.Server.Module#",
            new ProviderDirectWithTransmit(),
            new ProviderDirectService("ServerDirect", zeze),
            "Game.Linkd",
            new LoadConfig());
    provider.create(this);
    zeze.initialize(this);
    app.providerService.AddFactoryHandle(
        new Say().getTypeId(), new Service.ProtocolFactoryHandle<>(Say::new, this::handle));
    modules.put("interop.Talk", new Talk());
    zeze.start();
    provider.start();
    app.providerService.start();
    app.providerDirectService.start();
    app.startLast(ProviderModuleBinds.load(""), modules);
  }

  private static final class Talk implements IModule {
    @Override
    public String getFullName() {
      return "interop.Talk";
    }

    @Override
    public String getName() {
      return "Talk";
    }

    @Override
    public int getId() {
      return Say.MODULE;
    }
  }

  private long handle(Say say) {
    ProviderUserSession session = ProviderUserSession.get(say);
    say.Result.setControl(id);
    if (say.Argument.getDesc().equals("kick me")) {
      session.kick(BKick.ErrorSeeDescription, "as you wish");
    } else {
      Heard heard = new Heard();
      heard.Argument.setLinksid(session.getRoleIdNotNull());
      heard.Argument.setCode(say.Argument.getCode());
      heard.Argument.setDesc(say.Argument.getDesc());
      heard.Argument.setControl(id);
      provider.getOnline().send(say.Argument.getLinksid(), heard);
    }
    session.sendResponseWhileCommit(say);
    return 0;
  }

  @Override
  public Application getZeze() {
    return zeze;
  }

  public static void main(String[] arguments) throws Exception {
    Map<String, String> options = Common.options(arguments);
    PeerProvider server = new PeerProvider(options);
    Common.say("ready");
    Path stop = Path.of(options.get("--directory")).resolve("stop-" + server.id);
    while (!Files.exists(stop)) {
      Thread.sleep(20);
    }
    server.zeze.checkpointRun();
    server.provider.stop();
    server.zeze.stop();
    Common.say("stopped");
    System.exit(0);
  }
}
