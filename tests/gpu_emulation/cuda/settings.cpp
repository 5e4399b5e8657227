// The environment's settings, and the voices of the emulation.
#include "emulation.h"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <unistd.h>

namespace emulation {

static bool is_on(const char *name)
{
    const char *value = getenv(name);
    return value && *value == '1';
}

static Settings from_environment()
{
    const char *devices = getenv("FLEET_EMULATION_DEVICES"), *folder = getenv("FLEET_EMULATION");
    return {is_on("FLEET_EMULATION_ASYNC"), is_on("FLEET_EMULATION_LOG"), is_on("FLEET_EMULATION_NOOP"),
            devices ? atoi(devices) : 1, folder ? folder : ""};
}

const Settings &settings()
{
    // Never destroyed: threads of the emulation may outlive main().
    static const Settings &found = *new Settings(from_environment());
    return found;
}

static void say(const char *format, va_list values)
{
    fprintf(stderr, "gpu emulation, process %d: ", (int)getpid());
    vfprintf(stderr, format, values);
    fputc('\n', stderr);
}

void log(const char *format, ...)
{
    if (!settings().log)
        return;
    va_list values;
    va_start(values, format);
    say(format, values);
    va_end(values);
}

void complain(const char *format, ...)
{
    va_list values;
    va_start(values, format);
    say(format, values);
    va_end(values);
}

int not_emulated(const char *name, int code)
{
    complain("%s is not emulated", name);
    return code;
}

void die(const char *format, ...)
{
    va_list values;
    va_start(values, format);
    say(format, values);
    va_end(values);
    abort();
}

}   // namespace emulation
