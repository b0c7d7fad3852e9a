#include "tools/gen/commands.h"

#include <iostream>
#include <map>
#include <memory>
#include <string>

#include <CLI/CLI.hpp>

#include "tools/gen/emitter.h"
#include "tools/gen/generate.h"
#include "tools/gen/plan.h"

namespace zeze::gen {

void AddGenCommand(CLI::App& app, int& exit_code) {
  CLI::App* command =
      app.add_subcommand("gen", "Generate C++ or TypeScript from a schema (solution.xml)");
  auto options = std::make_shared<GenerateOptions>();
  command->add_option("solution", options->solutions, "Schema files; what they import is found");
  command->add_option("-o,--out", options->out, "Directory for the code; none: only check");
  command->add_option("-p,--project", options->project,
                      "Project to generate; default: the only one for the language, else "
                      "everything");
  command
      ->add_option("-l,--language", options->language,
                   "cxx or typescript; default: TypeScript for a named project with "
                   "platform=\"ts\", else C++")
      ->type_name("NAME")
      ->transform(CLI::CheckedTransformer(
                      std::map<std::string, Language>{{"cxx", Language::kCxx},
                                                      {"typescript", Language::kTypeScript},
                                                      {"ts", Language::kTypeScript}})
                      .description(""));  // Its own prints the numbers.
  command->add_option("--runtime", options->runtime,
                      "TypeScript: the module to import the client's library from (default: "
                      "zeze-client); \"./...\" is relative to --out");
  command
      ->add_option("--only", options->only,
                   "C++: messages (beans and protocols, for programs that are no servers) or "
                   "modules (their base classes, which need the messages); default: both")
      ->type_name("PART")
      ->transform(
          CLI::CheckedTransformer(std::map<std::string, Parts>{{"messages", Parts::kMessages},
                                                               {"modules", Parts::kModules}})
              .description(""));
  command->add_option("--skeleton", options->skeleton,
                      "Write user-owned Module<Name>.h/.cc and main.cc here, where none are yet");
  command->add_option("--explain", options->explain,
                      "Print who sends, handles and serves what in a project (* = all)");
  command->add_option("--xsd", options->xsd, "Write the XSD of the language here (- = print it)");
  command->add_option("--shards", options->shards, "Files to compile in parallel")
      ->check(CLI::Range(1, 256));
  command
      ->add_option("--tracks", options->tracks,
                   "Files track_N.h that tell a build which headers changed")
      ->check(CLI::Range(0, 256));
  command->add_option("--depfile", options->depfile, "Write the files read, as a rule for make");
  command->add_option("--stamp", options->stamp, "Touch this file at the end; target of the rule");
  command->add_flag("--strict", options->strict, "Warnings are errors");
  command->add_flag("-q,--quiet", options->quiet, "No notes and no summary");
  command->add_flag("-v,--verbose", options->verbose, "Name every file written or removed");
  auto* lock = command->add_flag_callback(
      "--lock", [options] { options->lock = LockMode::kWrite; },
      "Create the lock file beside the schema if there is none");
  auto* frozen = command->add_flag_callback(
      "--frozen", [options] { options->lock = LockMode::kFrozen; },
      "The lock file must be there and fit; write nothing into it");
  auto* no_lock = command->add_flag_callback(
      "--no-lock", [options] { options->lock = LockMode::kIgnore; }, "Ignore the lock file");
  lock->excludes(frozen)->excludes(no_lock);
  frozen->excludes(no_lock);
  command->footer(
      "Examples:\n"
      "  zeze gen solution.xml                          check it\n"
      "  zeze gen solution.xml --out gen                generate\n"
      "  zeze gen solution.xml --out gen --skeleton src first time: modules to fill in\n"
      "  zeze gen solution.xml --project client --language typescript --out client/src/gen\n"
      "  zeze gen solution.xml --explain server         who handles what\n"
      "  zeze gen --xsd solution.xsd                    completion in editors\n"
      "In CMake: zeze_generate(TARGET server SOLUTION solution.xml)\n"
      "Exit code: 0 fine, 1 the schema is wrong, 2 files could not be read or written.");
  command->callback(
      [options, &exit_code] { exit_code = Generate(*options, std::cout, std::cerr); });
}

void AddNewCommand(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("new", "Start a new project: schema, build, code");
  auto options = std::make_shared<NewOptions>();
  command->add_option("name", options->name, "Name of the project: letters and digits")->required();
  command->add_option("--directory", options->directory, "Where; default: a folder of that name");
  command->footer("Example:\n  zeze new shop && cd shop");
  command->callback(
      [options, &exit_code] { exit_code = NewProject(*options, std::cout, std::cerr); });
}

}  // namespace zeze::gen
