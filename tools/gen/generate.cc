#include "tools/gen/generate.h"

#include <filesystem>
#include <ostream>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "tools/gen/checker.h"
#include "tools/gen/emitter.h"
#include "tools/gen/lock_file.h"
#include "tools/gen/model.h"
#include "tools/gen/names.h"
#include "tools/gen/output.h"
#include "tools/gen/plan.h"
#include "tools/gen/reader.h"
#include "tools/gen/reports.h"
#include "tools/gen/skeleton.h"
#include "zeze/base/result.h"
#include "zeze/xml/diagnostics.h"

namespace zeze::gen {
namespace {

namespace fs = std::filesystem;

constexpr int kFine = 0;
constexpr int kSchemaIsWrong = 1;
constexpr int kEnvironmentFailed = 2;

class Run {
 public:
  Run(const GenerateOptions& options, std::ostream& out, std::ostream& err)
      : options_(options), out_(out), err_(err), diagnostics_(options.strict) {}

  int Go() {
    Model model;
    ReadModel(options_.solutions, diagnostics_, model);
    // Names are only worth resolving in files that could be read.
    CheckModel(model, diagnostics_);
    std::string explanation;
    if (!options_.explain.empty()) explanation = Explain(model, options_.explain, diagnostics_);
    const Plan plan = MakePlan(model, options_.project, options_.language, diagnostics_);
    CheckLanguage(plan);
    if (diagnostics_.has_errors()) return Finish(kSchemaIsWrong);
    std::string lock_text;
    if (!PrepareLock(model, lock_text)) return Finish(kSchemaIsWrong);
    out_ << explanation;
    if (!WriteAll(model, plan, lock_text)) return Finish(kEnvironmentFailed);
    return Finish(kFine);
  }

 private:
  int Finish(int code) {
    diagnostics_.SortByLocation();
    err_ << diagnostics_.Format(options_.quiet ? xml::Severity::kWarning : xml::Severity::kNote);
    return code;
  }

  bool Fail(const Error& error) {
    err_ << "error: " << error.message() << "\n";
    return false;
  }

  std::string LockPath() const {
    return fs::path(options_.solutions.front()).replace_extension(".lock").string();
  }

  // The lock that goes with the model; false if it says that the schema is wrong.
  bool PrepareLock(const Model& model, std::string& text) {
    std::error_code code;
    const std::string path = LockPath();
    const bool present = fs::exists(path, code);
    if (options_.lock == LockMode::kIgnore || (!present && options_.lock == LockMode::kIfPresent)) {
      return true;
    }
    if (!present && options_.lock == LockMode::kFrozen) {
      diagnostics_.Error({path, 0, 0}, "there is no lock file", "create it with zeze gen --lock");
      return false;
    }
    LockFile locked;
    std::string before;
    if (present) {
      Result<std::string> read = ReadWholeFile(path);
      if (!read.ok()) {
        diagnostics_.Error({path, 0, 0}, read.error().message());
        return false;
      }
      before = std::move(read).value();
      locked = LockFile::Parse(before, path, diagnostics_);
    }
    const LockFile next = locked.Advance(model, diagnostics_);
    if (diagnostics_.has_errors()) return false;
    text = next.Format();
    if (options_.lock == LockMode::kFrozen) {
      if (text != before) {
        diagnostics_.Error({path, 0, 0}, "the lock file does not fit the schema",
                           "run zeze gen without --frozen and check the lock file in");
        return false;
      }
      text.clear();
    }
    return true;
  }

  void CheckLanguage(const Plan& plan) {
    if (plan.language == Language::kCxx) return;
    const auto refuse = [&](std::string_view option) {
      diagnostics_.Error(
          {}, fmt::format("{} writes C++; there is nothing of the kind for TypeScript", option),
          "leave it out");
    };
    if (!options_.skeleton.empty()) refuse("--skeleton");
    if (options_.only != Parts::kAll) refuse("--only");
  }

  Result<WriteReport> WriteCode(const Plan& plan) {
    if (plan.language == Language::kTypeScript) {
      return WriteFiles(options_.out, EmitTypeScript(plan, options_.runtime), {".ts"});
    }
    return WriteFiles(
        options_.out,
        Emit(plan, {.parts = options_.only, .shards = options_.shards, .tracks = options_.tracks}),
        {".h", ".cc"});
  }

  bool WriteAll(const Model& model, const Plan& plan, const std::string& lock_text) {
    if (!options_.out.empty()) {
      Result<WriteReport> report = WriteCode(plan);
      if (!report.ok()) return Fail(report.error());
      Print(report.value());
    }
    if (!options_.skeleton.empty() && !WriteSkeleton(plan)) return false;
    if (!lock_text.empty()) {
      Result<bool> written = WriteIfChanged(LockPath(), lock_text);
      if (!written.ok()) return Fail(written.error());
      if (written.value() && !options_.quiet) out_ << "wrote " << LockPath() << "\n";
    }
    const std::string target = options_.stamp.empty() ? options_.out : options_.stamp;
    if (!options_.depfile.empty()) {
      Result<bool> written = WriteIfChanged(options_.depfile, FormatDepfile(target, model.files));
      if (!written.ok()) return Fail(written.error());
    }
    if (!options_.stamp.empty()) {
      std::error_code code;
      fs::remove(options_.stamp, code);  // So that its time is that of this run.
      Result<bool> written = WriteIfChanged(options_.stamp, "generated\n");
      if (!written.ok()) return Fail(written.error());
    }
    return true;
  }

  void Print(const WriteReport& report) {
    if (options_.verbose) {
      for (const std::string& path : report.written) out_ << "wrote " << path << "\n";
      for (const std::string& path : report.removed) out_ << "removed " << path << "\n";
      for (const std::string& path : report.kept) out_ << "left alone " << path << " (not ours)\n";
    }
    if (!options_.quiet) {
      out_ << fmt::format("{}: {} files written, {} unchanged, {} removed\n", options_.out,
                          report.written.size(), report.unchanged, report.removed.size());
    }
  }

  bool WriteSkeleton(const Plan& plan) {
    for (const auto& [relative, content] : SkeletonFiles(plan)) {
      const std::string path = (fs::path(options_.skeleton) / relative).string();
      Result<bool> written = WriteOnce(path, content);
      if (!written.ok()) return Fail(written.error());
      if (!options_.quiet) out_ << (written.value() ? "wrote " : "kept ") << path << "\n";
    }
    return true;
  }

  const GenerateOptions& options_;
  std::ostream& out_;
  std::ostream& err_;
  Diagnostics diagnostics_;
};

}  // namespace

int Generate(const GenerateOptions& options, std::ostream& out, std::ostream& err) {
  if (!options.xsd.empty()) {
    const std::string text = FormatXsd();
    if (options.xsd == "-") {
      out << text;
    } else if (Result<bool> written = WriteIfChanged(options.xsd, text); !written.ok()) {
      err << "error: " << written.error().message() << "\n";
      return kEnvironmentFailed;
    }
    if (options.solutions.empty()) return kFine;
  }
  if (options.solutions.empty()) {
    err << "error: no schema was given\n  hint: zeze gen solution.xml --out gen\n";
    return kEnvironmentFailed;
  }
  for (const std::string& path : options.solutions) {
    std::error_code code;
    if (fs::exists(path, code)) continue;
    err << fmt::format("error: there is no schema '{}'\n  hint: the path is relative to {}\n", path,
                       fs::current_path(code).string());
    return kEnvironmentFailed;
  }
  return Run(options, out, err).Go();
}

int NewProject(const NewOptions& options, std::ostream& out, std::ostream& err) {
  if (const std::string why = WhyNotAName(options.name); !why.empty()) {
    err << fmt::format("error: '{}' cannot be the name of a project: {}\n", options.name, why);
    return kEnvironmentFailed;
  }
  if (IsReservedWord(options.name) || CxxName(options.name) != options.name) {
    err << fmt::format("error: '{}' cannot be the name of a project: the word is reserved\n",
                       options.name);
    return kEnvironmentFailed;
  }
  const std::string directory = options.directory.empty() ? options.name : options.directory;
  std::error_code code;
  if (fs::exists(directory, code) && !fs::is_empty(directory, code)) {
    err << fmt::format(
        "error: '{}' is there already and not empty\n"
        "  hint: choose another name or a directory with --directory\n",
        directory);
    return kEnvironmentFailed;
  }
  for (const auto& [relative, content] : NewProjectFiles(options.name)) {
    const std::string path = (fs::path(directory) / relative).string();
    Result<bool> written = WriteOnce(path, content);
    if (!written.ok()) {
      err << "error: " << written.error().message() << "\n";
      return kEnvironmentFailed;
    }
    out << "wrote " << path << "\n";
  }
  out << fmt::format(
      "\nNext:\n  cd {}\n  cmake -B build -G Ninja && cmake --build build\n  build/{}\n", directory,
      options.name);
  return kFine;
}

}  // namespace zeze::gen
