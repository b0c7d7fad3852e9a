// World: brings players to maps. Its server knows which server runs a map, by hash, and asks it to
// take the player over.

#pragma once

#include <cstdint>

#include "arena/World.module.h"
#include "zeze/app/application.h"
#include "zeze/app/session.h"
#include "zeze/arch/redirect/redirect.h"
#include "zeze/base/result.h"

namespace arena_example {

class Players;

class World final : public arena::World::ModuleWorldBase {
 public:
  explicit World(Players& players) : players_(players) {}

  // Before the first message. Both outlive the module's use.
  void Connect(zeze::Application& application, zeze::arch::Redirect& redirect) {
    application_ = &application;
    redirect_ = &redirect;
  }

  std::int64_t ProcessEnterMap(zeze::Session& session, const arena::World::BEnterMap& argument,
                               arena::World::BEnterMapResult& result) override;
  std::int64_t ProcessLeaveMap(zeze::Session& session) override;

 private:
  Players& players_;
  zeze::Application* application_ = nullptr;
  zeze::arch::Redirect* redirect_ = nullptr;
};

}  // namespace arena_example
