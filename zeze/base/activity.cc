#include "zeze/base/activity.h"

#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <pthread.h>
#include <unistd.h>

#include "zeze/base/mutex.h"

namespace zeze {

namespace {

struct Thread {
  internal::ActivitySlot slot;
  std::int64_t id = 0;
  std::string name;
};

struct Registry {
  Mutex mutex;
  std::list<Thread> threads ZEZE_GUARDED_BY(mutex);
  std::set<std::string, std::less<>> names ZEZE_GUARDED_BY(mutex);
};

// Never destroyed: threads may end after the static objects have gone.
Registry& TheRegistry() {
  static auto& registry = *new Registry();
  return registry;
}

std::string SystemNameOfThisThread() {
  char name[32] = "";
  pthread_getname_np(pthread_self(), name, sizeof name);
  return name;
}

// Its life is that of the thread.
class Registration {
 public:
  Registration() {
    Registry& registry = TheRegistry();
    MutexLock lock(registry.mutex);
    thread_ = registry.threads.emplace(registry.threads.end());
    thread_->id = gettid();
    thread_->name = SystemNameOfThisThread();
    internal::activity_slot = &thread_->slot;
  }

  ~Registration() {
    internal::activity_slot = nullptr;
    Registry& registry = TheRegistry();
    MutexLock lock(registry.mutex);
    registry.threads.erase(thread_);
  }

  Registration(const Registration&) = delete;
  Registration& operator=(const Registration&) = delete;

  void SetName(std::string_view name) {
    MutexLock lock(TheRegistry().mutex);
    thread_->name = name;
  }

 private:
  std::list<Thread>::iterator thread_;
};

Registration& ThisThread() {
  thread_local Registration registration;
  return registration;
}

}  // namespace

namespace internal {

constinit thread_local ActivitySlot* activity_slot = nullptr;

ActivitySlot& RegisterActivitySlot() {
  ThisThread();
  if (activity_slot != nullptr) return *activity_slot;
  // The thread is ending, its registration gone: nobody will look any more.
  static auto& unseen = *new ActivitySlot();
  return unseen;
}

}  // namespace internal

const char* InternName(std::string_view name) {
  Registry& registry = TheRegistry();
  MutexLock lock(registry.mutex);
  auto found = registry.names.find(name);
  if (found == registry.names.end()) found = registry.names.emplace(name).first;
  return found->c_str();
}

void SetThreadName(std::string_view name) {
  pthread_setname_np(pthread_self(), std::string(name.substr(0, 15)).c_str());
  ThisThread().SetName(name);
}

std::vector<Activity> RunningActivities() {
  Registry& registry = TheRegistry();
  std::vector<Activity> running;
  MutexLock lock(registry.mutex);
  for (const Thread& thread : registry.threads) {
    Activity activity;
    activity.sequence = thread.slot.sequence.load(std::memory_order_acquire);
    if (activity.sequence % 2 == 0) continue;
    activity.outer = thread.slot.outer.load(std::memory_order_relaxed);
    activity.inner = thread.slot.inner.load(std::memory_order_relaxed);
    if (activity.inner == nullptr) activity.inner = activity.outer;
    activity.thread_name = thread.name;
    activity.thread_id = thread.id;
    running.push_back(std::move(activity));
  }
  return running;
}

}  // namespace zeze
