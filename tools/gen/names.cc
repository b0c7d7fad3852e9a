#include "tools/gen/names.h"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_set>

#include <fmt/format.h>

namespace zeze::gen {
namespace {

using Words = std::unordered_set<std::string_view>;

const Words& CxxWords() {
  static const Words words = {"alignas",       "alignof",     "and",
                              "and_eq",        "asm",         "auto",
                              "bitand",        "bitor",       "bool",
                              "break",         "case",        "catch",
                              "char",          "char8_t",     "char16_t",
                              "char32_t",      "class",       "compl",
                              "concept",       "const",       "consteval",
                              "constexpr",     "constinit",   "const_cast",
                              "continue",      "co_await",    "co_return",
                              "co_yield",      "decltype",    "default",
                              "delete",        "do",          "double",
                              "dynamic_cast",  "else",        "enum",
                              "explicit",      "export",      "extern",
                              "false",         "float",       "for",
                              "friend",        "goto",        "if",
                              "inline",        "int",         "long",
                              "mutable",       "namespace",   "new",
                              "noexcept",      "not",         "not_eq",
                              "nullptr",       "operator",    "or",
                              "or_eq",         "private",     "protected",
                              "public",        "register",    "reinterpret_cast",
                              "requires",      "return",      "short",
                              "signed",        "sizeof",      "static",
                              "static_assert", "static_cast", "struct",
                              "switch",        "template",    "this",
                              "thread_local",  "throw",       "true",
                              "try",           "typedef",     "typeid",
                              "typename",      "union",       "unsigned",
                              "using",         "virtual",     "void",
                              "volatile",      "wchar_t",     "while",
                              "xor",           "xor_eq"};
  return words;
}

// Not reserved by the language, but unusable in a program that includes our headers.
const Words& CxxTakenWords() {
  static const Words words = {"std",     "zeze",   "errno",    "assert",   "NULL", "EOF",   "stdin",
                              "stdout",  "stderr", "offsetof", "linux",    "unix", "major", "minor",
                              "signals", "slots",  "BUFSIZ",   "INFINITY", "NAN",  "main"};
  return words;
}

// Macros of the C library that our headers bring along, as words between blanks.
constexpr std::string_view kMacros =
    " "
    "ADJ_ESTERROR ADJ_FREQUENCY ADJ_MAXERROR ADJ_MICRO ADJ_NANO ADJ_OFFSET "
    "ADJ_OFFSET_SINGLESHOT ADJ_OFFSET_SS_READ ADJ_SETOFFSET ADJ_STATUS ADJ_TAI ADJ_TICK "
    "ADJ_TIMECONST AIO_PRIO_DELTA_MAX ATOMIC_BOOL_LOCK_FREE ATOMIC_CHAR16_T_LOCK_FREE "
    "ATOMIC_CHAR32_T_LOCK_FREE ATOMIC_CHAR8_T_LOCK_FREE ATOMIC_CHAR_LOCK_FREE "
    "ATOMIC_FLAG_INIT ATOMIC_INT_LOCK_FREE ATOMIC_LLONG_LOCK_FREE ATOMIC_LONG_LOCK_FREE "
    "ATOMIC_POINTER_LOCK_FREE ATOMIC_SHORT_LOCK_FREE ATOMIC_WCHAR_T_LOCK_FREE BC_BASE_MAX "
    "BC_DIM_MAX BC_SCALE_MAX BC_STRING_MAX BIG_ENDIAN BOOL_MAX BOOL_WIDTH BYTE_ORDER "
    "CHARCLASS_NAME_MAX CHAR_BIT CHAR_MAX CHAR_MIN CHAR_WIDTH CLOCKS_PER_SEC CLOCK_BOOTTIME "
    "CLOCK_BOOTTIME_ALARM CLOCK_MONOTONIC CLOCK_MONOTONIC_COARSE CLOCK_MONOTONIC_RAW "
    "CLOCK_PROCESS_CPUTIME_ID CLOCK_REALTIME CLOCK_REALTIME_ALARM CLOCK_REALTIME_COARSE "
    "CLOCK_TAI CLOCK_THREAD_CPUTIME_ID CLONE_CHILD_CLEARTID CLONE_CHILD_SETTID CLONE_DETACHED "
    "CLONE_FILES CLONE_FS CLONE_IO CLONE_NEWCGROUP CLONE_NEWIPC CLONE_NEWNET CLONE_NEWNS "
    "CLONE_NEWPID CLONE_NEWTIME CLONE_NEWUSER CLONE_NEWUTS CLONE_PARENT CLONE_PARENT_SETTID "
    "CLONE_PIDFD CLONE_PTRACE CLONE_SETTLS CLONE_SIGHAND CLONE_SYSVSEM CLONE_THREAD "
    "CLONE_UNTRACED CLONE_VFORK CLONE_VM CLOSE_RANGE_CLOEXEC CLOSE_RANGE_UNSHARE "
    "COLL_WEIGHTS_MAX CPU_SETSIZE CSIGNAL DELAYTIMER_MAX DOMAIN E2BIG EACCES EADDRINUSE "
    "EADDRNOTAVAIL EADV EAFNOSUPPORT EAGAIN EALREADY EBADE EBADF EBADFD EBADMSG EBADR EBADRQC "
    "EBADSLT EBFONT EBUSY ECANCELED ECHILD ECHRNG ECOMM ECONNABORTED ECONNREFUSED ECONNRESET "
    "EDEADLK EDEADLOCK EDESTADDRREQ EDOM EDOTDOT EDQUOT EEXIST EFAULT EFBIG EHOSTDOWN "
    "EHOSTUNREACH EHWPOISON EIDRM EILSEQ EINPROGRESS EINTR EINVAL EIO EISCONN EISDIR EISNAM "
    "EKEYEXPIRED EKEYREJECTED EKEYREVOKED EL2HLT EL2NSYNC EL3HLT EL3RST ELIBACC ELIBBAD "
    "ELIBEXEC ELIBMAX ELIBSCN ELNRNG ELOOP EMEDIUMTYPE EMFILE EMLINK EMSGSIZE EMULTIHOP "
    "ENAMETOOLONG ENAVAIL ENETDOWN ENETRESET ENETUNREACH ENFILE ENOANO ENOBUFS ENOCSI ENODATA "
    "ENODEV ENOENT ENOEXEC ENOKEY ENOLCK ENOLINK ENOMEDIUM ENOMEM ENOMSG ENONET ENOPKG "
    "ENOPROTOOPT ENOSPC ENOSR ENOSTR ENOSYS ENOTBLK ENOTCONN ENOTDIR ENOTEMPTY ENOTNAM "
    "ENOTRECOVERABLE ENOTSOCK ENOTSUP ENOTTY ENOTUNIQ ENXIO EOPNOTSUPP EOVERFLOW EOWNERDEAD "
    "EPERM EPFNOSUPPORT EPIPE EPROTO EPROTONOSUPPORT EPROTOTYPE ERANGE EREMCHG EREMOTE "
    "EREMOTEIO ERESTART ERFKILL EROFS ESHUTDOWN ESOCKTNOSUPPORT ESPIPE ESRCH ESRMNT ESTALE "
    "ESTRPIPE ETIME ETIMEDOUT ETOOMANYREFS ETXTBSY EUCLEAN EUNATCH EUSERS EWOULDBLOCK EXDEV "
    "EXFULL EXIT_FAILURE EXIT_SUCCESS EXPR_NEST_MAX FD_SETSIZE FILENAME_MAX FOPEN_MAX F_LOCK "
    "F_OK F_TEST F_TLOCK F_ULOCK HOST_NAME_MAX HUGE_VAL INFINITY INT16_MAX INT16_MIN "
    "INT16_WIDTH INT32_MAX INT32_MIN INT32_WIDTH INT64_MAX INT64_MIN INT64_WIDTH INT8_MAX "
    "INT8_MIN INT8_WIDTH INTMAX_MAX INTMAX_MIN INTMAX_WIDTH INTPTR_MAX INTPTR_MIN "
    "INTPTR_WIDTH INT_FAST16_MAX INT_FAST16_MIN INT_FAST16_WIDTH INT_FAST32_MAX "
    "INT_FAST32_MIN INT_FAST32_WIDTH INT_FAST64_MAX INT_FAST64_MIN INT_FAST64_WIDTH "
    "INT_FAST8_MAX INT_FAST8_MIN INT_FAST8_WIDTH INT_LEAST16_MAX INT_LEAST16_MIN "
    "INT_LEAST16_WIDTH INT_LEAST32_MAX INT_LEAST32_MIN INT_LEAST32_WIDTH INT_LEAST64_MAX "
    "INT_LEAST64_MIN INT_LEAST64_WIDTH INT_LEAST8_MAX INT_LEAST8_MIN INT_LEAST8_WIDTH INT_MAX "
    "INT_MIN INT_WIDTH IOV_MAX ITIMER_PROF ITIMER_REAL ITIMER_VIRTUAL LC_ADDRESS "
    "LC_ADDRESS_MASK LC_ALL LC_ALL_MASK LC_COLLATE LC_COLLATE_MASK LC_CTYPE LC_CTYPE_MASK "
    "LC_GLOBAL_LOCALE LC_IDENTIFICATION LC_IDENTIFICATION_MASK LC_MEASUREMENT "
    "LC_MEASUREMENT_MASK LC_MESSAGES LC_MESSAGES_MASK LC_MONETARY LC_MONETARY_MASK LC_NAME "
    "LC_NAME_MASK LC_NUMERIC LC_NUMERIC_MASK LC_PAPER LC_PAPER_MASK LC_TELEPHONE "
    "LC_TELEPHONE_MASK LC_TIME LC_TIME_MASK LINE_MAX LITTLE_ENDIAN LLONG_MAX LLONG_MIN "
    "LLONG_WIDTH LOGIN_NAME_MAX LONG_BIT LONG_LONG_MAX LONG_LONG_MIN LONG_MAX LONG_MIN "
    "LONG_WIDTH L_INCR L_SET L_XTND L_ctermid L_cuserid L_tmpnam MAX_CANON MAX_INPUT "
    "MB_CUR_MAX MB_LEN_MAX MOD_CLKA MOD_CLKB MOD_ESTERROR MOD_FREQUENCY MOD_MAXERROR "
    "MOD_MICRO MOD_NANO MOD_OFFSET MOD_STATUS MOD_TAI MOD_TIMECONST MQ_PRIO_MAX MSG_PEEK M_E "
    "M_PI NAME_MAX NAN NFDBITS NGROUPS_MAX NL_ARGMAX NL_LANGMAX NL_MSGMAX NL_NMAX NL_SETMAX "
    "NL_TEXTMAX NZERO OVERFLOW PATH_MAX PDP_ENDIAN PIPE_BUF PLOSS "
    "PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP PTHREAD_ATTR_NO_SIGMASK_NP "
    "PTHREAD_BARRIER_SERIAL_THREAD PTHREAD_CANCELED PTHREAD_CANCEL_ASYNCHRONOUS "
    "PTHREAD_CANCEL_DEFERRED PTHREAD_CANCEL_DISABLE PTHREAD_CANCEL_ENABLE "
    "PTHREAD_COND_INITIALIZER PTHREAD_CREATE_DETACHED PTHREAD_CREATE_JOINABLE "
    "PTHREAD_DESTRUCTOR_ITERATIONS PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP "
    "PTHREAD_EXPLICIT_SCHED PTHREAD_INHERIT_SCHED PTHREAD_KEYS_MAX PTHREAD_MUTEX_INITIALIZER "
    "PTHREAD_ONCE_INIT PTHREAD_PROCESS_PRIVATE PTHREAD_PROCESS_SHARED "
    "PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP PTHREAD_RWLOCK_INITIALIZER "
    "PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP PTHREAD_SCOPE_PROCESS "
    "PTHREAD_SCOPE_SYSTEM PTHREAD_STACK_MIN PTRDIFF_MAX PTRDIFF_MIN PTRDIFF_WIDTH P_tmpdir "
    "RAND_MAX RENAME_EXCHANGE RENAME_NOREPLACE RENAME_WHITEOUT RE_DUP_MAX RTSIG_MAX R_OK "
    "SCHAR_MAX SCHAR_MIN SCHAR_WIDTH SCHED_BATCH SCHED_DEADLINE SCHED_FIFO SCHED_IDLE "
    "SCHED_ISO SCHED_OTHER SCHED_RESET_ON_FORK SCHED_RR SEEK_CUR SEEK_DATA SEEK_END SEEK_HOLE "
    "SEEK_SET SEM_FAILED SEM_VALUE_MAX SHRT_MAX SHRT_MIN SHRT_WIDTH SIGABRT SIGALRM SIGBUS "
    "SIGCHLD SIGCONT SIGFPE SIGHUP SIGILL SIGINT SIGKILL SIGPIPE SIGQUIT SIGSEGV SIGSTOP "
    "SIGTERM SIGTRAP SIGUSR1 SIGUSR2 SIG_ATOMIC_MAX SIG_ATOMIC_MIN SIG_ATOMIC_WIDTH SING "
    "SIZE_MAX SIZE_WIDTH SSIZE_MAX STA_CLK STA_CLOCKERR STA_DEL STA_FLL STA_FREQHOLD STA_INS "
    "STA_MODE STA_NANO STA_PLL STA_PPSERROR STA_PPSFREQ STA_PPSJITTER STA_PPSSIGNAL "
    "STA_PPSTIME STA_PPSWANDER STA_RONLY STA_UNSYNC STDERR_FILENO STDIN_FILENO STDOUT_FILENO "
    "TIMER_ABSTIME TIME_UTC TLOSS TMP_MAX TTY_NAME_MAX UCHAR_MAX UCHAR_WIDTH UINT16_MAX "
    "UINT16_WIDTH UINT32_MAX UINT32_WIDTH UINT64_MAX UINT64_WIDTH UINT8_MAX UINT8_WIDTH "
    "UINTMAX_MAX UINTMAX_WIDTH UINTPTR_MAX UINTPTR_WIDTH UINT_FAST16_MAX UINT_FAST16_WIDTH "
    "UINT_FAST32_MAX UINT_FAST32_WIDTH UINT_FAST64_MAX UINT_FAST64_WIDTH UINT_FAST8_MAX "
    "UINT_FAST8_WIDTH UINT_LEAST16_MAX UINT_LEAST16_WIDTH UINT_LEAST32_MAX UINT_LEAST32_WIDTH "
    "UINT_LEAST64_MAX UINT_LEAST64_WIDTH UINT_LEAST8_MAX UINT_LEAST8_WIDTH UINT_MAX "
    "UINT_WIDTH ULLONG_MAX ULLONG_WIDTH ULONG_LONG_MAX ULONG_MAX ULONG_WIDTH UNDERFLOW "
    "USHRT_MAX USHRT_WIDTH WCHAR_MAX WCHAR_MIN WCHAR_WIDTH WCONTINUED WEOF WEXITED WINT_MAX "
    "WINT_MIN WINT_WIDTH WNOHANG WNOWAIT WORD_BIT WSTOPPED WUNTRACED W_OK XATTR_LIST_MAX "
    "XATTR_NAME_MAX XATTR_SIZE_MAX X_OK sched_priority ";

bool IsMacro(std::string_view name) {
  return name.starts_with("SYS_") ||
         kMacros.find(fmt::format(" {} ", name)) != std::string_view::npos;
}

// Names of schemas are no reserved words of TypeScript; these are the others that cannot be used.
const Words& TypeScriptTakenWords() {
  static const Words words = {"any",        "arguments", "bigint",  "boolean",   "eval",
                              "never",      "number",    "symbol",  "undefined", "unknown",
                              "zeze",       "Map",       "Object",  "Set",       "Uint8Array",
                              "implements", "interface", "package", "private",   "protected",
                              "public",     "static"};
  return words;
}

const Words& OtherWords() {
  static const Words words = {
      // Java
      "abstract", "boolean", "byte", "extends", "final", "finally", "implements", "import",
      "instanceof", "interface", "native", "null", "package", "strictfp", "super", "synchronized",
      "throws", "transient", "assert",
      // C#
      "as", "base", "checked", "decimal", "delegate", "event", "fixed", "foreach", "implicit", "in",
      "internal", "is", "lock", "object", "out", "override", "params", "readonly", "ref", "sbyte",
      "sealed", "stackalloc", "string", "typeof", "uint", "ulong", "unchecked", "unsafe", "ushort",
      // JavaScript, TypeScript
      "await", "debugger", "function", "let", "var", "with", "yield",
      // Lua
      "elseif", "end", "local", "nil", "repeat", "then", "until"};
  return words;
}

}  // namespace

std::string WhyNotAName(std::string_view name) {
  if (name.empty()) return "it is empty";
  if (name.front() == '_') return "it starts with '_'";
  if (name.back() == '_') return "it ends with '_'";
  if (std::isdigit(static_cast<unsigned char>(name.front())) != 0) return "it starts with a digit";
  for (char c : name) {
    const auto u = static_cast<unsigned char>(c);
    if (u < 0x80 && std::isalnum(u) == 0 && c != '_') {
      return "it has the character '" + std::string(1, c) + "'";
    }
  }
  return {};
}

bool IsDottedName(std::string_view text) {
  for (;;) {
    const std::size_t dot = text.find('.');
    if (!WhyNotAName(text.substr(0, dot)).empty()) return false;
    if (dot == std::string_view::npos) return true;
    text.remove_prefix(dot + 1);
  }
}

bool IsReservedWord(std::string_view name) {
  if (name == "friend") return false;  // Too good a name for a game to give up.
  return CxxWords().contains(name) || OtherWords().contains(name);
}

std::string CxxName(std::string_view name) {
  std::string text(name);
  if (CxxWords().contains(name) || CxxTakenWords().contains(name) || IsMacro(name)) text += '_';
  return text;
}

std::string TypeScriptName(std::string_view name) {
  std::string text(name);
  if (TypeScriptTakenWords().contains(name)) text += '_';
  return text;
}

std::string CxxQualifiedName(std::string_view full_name) {
  std::string text;
  while (!full_name.empty()) {
    const std::size_t dot = std::min(full_name.find('.'), full_name.size());
    text += "::" + CxxName(full_name.substr(0, dot));
    full_name.remove_prefix(std::min(dot + 1, full_name.size()));
  }
  return text;
}

std::string UpperFirst(std::string_view name) {
  std::string text(name);
  if (!text.empty()) {
    text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  }
  return text;
}

std::string ToLower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

std::string_view Trim(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n";
  const std::size_t begin = text.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlank) - begin + 1);
}

}  // namespace zeze::gen
