// NVRTC by g++: the very text that cupy hands over is compiled to a shared library for the host.
//
// Compiled libraries are kept in the emulation's folder under a hash of all that they depend on; a library is written
// beside and renamed, so processes may share the folder. nvrtc.h is not at hand without a toolkit of 100 MB: a
// program's handle and the result codes are declared here.
#include "emulation.h"
#include "images.h"

#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <functional>
#include <regex>
#include <set>
#include <spawn.h>
#include <sstream>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

extern char **environ;

namespace emulation {

enum Result { SUCCESS = 0, COMPILATION_FAILED = 6, NO_LOWERED_NAMES = 10 };

struct Program {
    std::string text, image, messages;
    std::vector<std::string> expressions;   // kernels asked for by expression, which may name templates
};

static std::string lowered_name(size_t number)
{
    return "emulation_expression_" + std::to_string(number);
}

// Memory whose size is given by the launch: a name for the emulation's one buffer.
static std::string with_dynamic_shared_memory(const std::string &text)
{
    static const std::regex &declaration = *new std::regex(
        R"re(extern\s+__shared__\s+(?:__align__\s*\(\d+\)\s*)?([\w:<> ]+?)\s+(\w+)\s*\[\s*\]\s*;)re");
    return std::regex_replace(text, declaration, "$1 *$2 = ($1 *)emulation::emulation_dynamic_shared_memory;");
}

// Names of the functions that are __global__, but for templates.
static std::set<std::string> kernels_in(const std::string &text)
{
    static const std::regex &kernel = *new std::regex(
        R"re((template\s*<[^;{}]*>\s*)?(?:extern\s*"C"\s*)?(?:void\s+)?__global__\s+(?:void\s+)?)re"
        R"re((?:__launch_bounds__\s*\([^)]*\)\s*)?(?:void\s+)?(\w+)\s*\()re");
    std::set<std::string> names;
    for (std::sregex_iterator found(text.begin(), text.end(), kernel), end; found != end; ++found)
        if (!(*found)[1].matched)
            names.insert((*found)[2]);
    return names;
}

static std::string complete(const Program &program)
{
    std::string text = "#line 1 \"kernel\"\n" + with_dynamic_shared_memory(program.text) + "\n";
    for (const std::string &name : kernels_in(program.text))
        text += "EMULATION_KERNEL(" + name + ", " + name + ")\n";
    for (size_t i = 0; i < program.expressions.size(); i++)
        text += "EMULATION_KERNEL((" + program.expressions[i] + "), " + lowered_name(i) + ")\n";
    return text;
}

// g++ and what it is to do. Of cupy's options only where headers are and what is defined concern it; CUDA's headers
// would contradict the emulation's.
static std::vector<std::string> command(const Program &program, int count, const char **options)
{
    const bool of_cupy = program.text.find("#include <cupy/") != std::string::npos;
    const std::string header = settings().folder + "/include/" + (of_cupy ? "with_cupy.h" : "words.h");
    std::vector<std::string> words = {"g++", EMULATION_KERNEL_FLAGS, "-include", header};
    for (int i = 0; i < count; i++) {
        const std::string option = options[i];
        const bool of_toolkit = access((option.substr(2) + "/cuda_runtime.h").c_str(), R_OK) == 0;
        if (option.substr(0, 2) == "-D" || (option.substr(0, 2) == "-I" && !of_toolkit))
            words.push_back(option);
    }
    return words;
}

static int run(const std::vector<std::string> &words, const std::string &messages)
{
    std::vector<char *> arguments;
    for (const std::string &word : words)
        arguments.push_back(const_cast<char *>(word.c_str()));
    arguments.push_back(nullptr);
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, STDERR_FILENO, messages.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
    pid_t child;
    int status = posix_spawnp(&child, "g++", &files, nullptr, arguments.data(), environ);
    posix_spawn_file_actions_destroy(&files);
    if (status == 0 && waitpid(child, &status, 0) != child)
        status = -1;
    return status;
}

static std::string content(const std::string &path)
{
    std::ifstream file(path);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
}

static Result compile(Program &program, int count, const char **options)
{
    const std::string text = complete(program);
    std::vector<std::string> words = command(program, count, options);
    std::string key = text;
    for (const std::string &word : words)
        key += '\n' + word;
    char name[32];
    snprintf(name, sizeof name, "%016zx", std::hash<std::string>()(key));
    const std::string base = settings().folder + "/kernels/" + name, library = base + ".so";
    program.image = image_of(library);
    if (access(library.c_str(), R_OK) == 0)
        return SUCCESS;
    const std::string mine = base + "." + std::to_string(getpid()) + "." + std::to_string(gettid());
    std::ofstream(mine + ".cpp") << text;
    words.insert(words.end(), {mine + ".cpp", settings().folder + "/lib/libemulation.so", "-o", mine + ".so"});
    const int status = run(words, mine + ".log");
    program.messages = content(mine + ".log");
    unlink((mine + ".log").c_str());
    if (status) {
        complain("g++ refuses a kernel, kept as %s.cpp:\n%s", mine.c_str(), program.messages.c_str());
        return COMPILATION_FAILED;
    }
    unlink((mine + ".cpp").c_str());
    rename((mine + ".so").c_str(), library.c_str());
    return SUCCESS;
}

}   // namespace emulation

using namespace emulation;

EXPORT const char *nvrtcGetErrorString(int result)
{
    return result == COMPILATION_FAILED ? "NVRTC_ERROR_COMPILATION" : result ? "an NVRTC error" : "NVRTC_SUCCESS";
}

EXPORT int nvrtcVersion(int *major, int *minor)
{
    *major = 13;
    *minor = 0;
    return SUCCESS;
}

EXPORT int nvrtcGetNumSupportedArchs(int *count)
{
    *count = 4;
    return SUCCESS;
}

EXPORT int nvrtcGetSupportedArchs(int *found)
{
    for (int architecture : {75, 80, 90, 100})
        *found++ = architecture;
    return SUCCESS;
}

EXPORT int nvrtcCreateProgram(Program **made, const char *text, const char *, int headers, const char **, const char **)
{
    if (headers)
        complain("headers handed to NVRTC as text are not emulated: the compilation will miss them");
    *made = new Program{text, "", "", {}};
    return SUCCESS;
}

EXPORT int nvrtcDestroyProgram(Program **program)
{
    delete *program;
    *program = nullptr;
    return SUCCESS;
}

EXPORT int nvrtcAddNameExpression(Program *program, const char *expression)
{
    program->expressions.push_back(expression);
    return SUCCESS;
}

EXPORT int nvrtcGetLoweredName(Program *program, const char *expression, const char **name)
{
    for (size_t i = 0; i < program->expressions.size(); i++)
        if (program->expressions[i] == expression) {
            *name = strdup(lowered_name(i).c_str());
            return SUCCESS;
        }
    return NO_LOWERED_NAMES;
}

EXPORT int nvrtcCompileProgram(Program *program, int count, const char **options)
{
    return compile(*program, count, options);
}

static int size_of(const std::string &text, size_t *size)
{
    *size = text.size() + 1;
    return SUCCESS;
}

static int copy_of(const std::string &text, char *to)
{
    memcpy(to, text.c_str(), text.size() + 1);
    return SUCCESS;
}

EXPORT int nvrtcGetPTXSize(Program *program, size_t *size) { return size_of(program->image, size); }
EXPORT int nvrtcGetPTX(Program *program, char *to) { return copy_of(program->image, to); }
EXPORT int nvrtcGetCUBINSize(Program *program, size_t *size) { return size_of(program->image, size); }
EXPORT int nvrtcGetCUBIN(Program *program, char *to) { return copy_of(program->image, to); }
EXPORT int nvrtcGetProgramLogSize(Program *program, size_t *size) { return size_of(program->messages, size); }
EXPORT int nvrtcGetProgramLog(Program *program, char *to) { return copy_of(program->messages, to); }
