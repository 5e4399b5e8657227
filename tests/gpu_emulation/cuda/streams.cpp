// Streams and events: what runs before what, and when.
//
// Every piece of work is queued, with the points of other streams that it has to come after. In the immediate mode it
// is then run at once, if it can be; in the asynchronous mode nothing is run until somebody waits, so that a result
// that was read without waiting is the old one. An event or stream that is only looked at counts as unfinished twice.
#include "emulation.h"

#include <cuda_runtime_api.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <set>
#include <vector>

namespace emulation {

const int LOOKS = 3;   // of a program that polls, until the device is seen to be done (asynchronous mode)
const auto POLL = std::chrono::microseconds(200);   // for work that waits for other processes

struct Stream;

// A point in a stream: reached when so many pieces of work are done.
struct Point {
    Stream *stream;
    long number;
};

struct Piece {
    std::vector<Point> after;
    Attempt attempt;
};

struct Stream {
    int device;
    bool non_blocking;   // not ordered with the default stream
    std::deque<Piece> queue = {};
    long enqueued = 0, done = 0;
    bool running = false;   // by some thread, which has let go of the lock meanwhile
    int looks = 0;
    bool destroyed = false;
};

struct Event {
    Point point = {nullptr, 0};   // no stream: never recorded
    int looks = 0;
    double seconds = 0;           // when it was reached
};

using Lock = std::unique_lock<std::mutex>;
static std::mutex &guard = *new std::mutex;
static std::condition_variable &changed = *new std::condition_variable;
// Streams and events are never freed: points of others may lead to them.
static std::set<Stream *> &streams = *new std::set<Stream *>;
static std::vector<Stream *> &default_streams = *new std::vector<Stream *>;

static Stream *default_stream(int device)
{
    while ((int)default_streams.size() <= device) {
        default_streams.push_back(new Stream{(int)default_streams.size(), false});
        streams.insert(default_streams.back());
    }
    return default_streams[device];
}

// The handles 1 and 2 are CUDA's legacy and per-thread default streams; both are the legacy one here.
static Stream *stream_of(void *handle)
{
    return (size_t)handle <= 2 ? default_stream(current_device()) : (Stream *)handle;
}

// What new work in a stream has to come after: the legacy default stream and the blocking ones wait for each other.
static std::vector<Point> predecessors(Stream *stream)
{
    std::vector<Point> found;
    Stream *legacy = default_stream(stream->device);
    for (Stream *other : streams) {
        const bool ordered = stream == legacy ? !other->non_blocking : !stream->non_blocking && other == legacy;
        if (ordered && other != stream && other->device == stream->device && other->done < other->enqueued)
            found.push_back({other, other->enqueued});
    }
    return found;
}

static bool advance(Point to, Lock &lock);

static bool advance_all(std::vector<Point> points, Lock &lock)
{
    for (Point point : points)
        if (!advance(point, lock))
            return false;
    return true;
}

// Runs a stream's work up to a point, and what that has to come after; returns whether the point is reached. Does not
// wait, neither for another thread that runs this stream's work nor for work that cannot be done yet.
static bool advance(Point to, Lock &lock)
{
    Stream *stream = to.stream;
    while (stream->done < to.number) {
        const long before = stream->done;
        if (stream->running || !advance_all(stream->queue.front().after, lock))
            return false;
        if (stream->running || stream->done != before)
            continue;   // another thread came first while the lock was free
        stream->running = true;
        Piece &next = stream->queue.front();   // stays where it is while others are appended
        lock.unlock();
        const bool over = next.attempt();
        lock.lock();
        stream->running = false;
        if (!over)
            return false;
        stream->queue.pop_front();
        stream->done++;
        changed.notify_all();
    }
    return true;
}

static void wait_for(Point point, Lock &lock)
{
    while (!advance(point, lock))
        changed.wait_for(lock, POLL);
}

static void append(Stream *stream, Attempt attempt, std::vector<Point> after, Lock &lock)
{
    for (Point point : predecessors(stream))
        after.push_back(point);
    stream->queue.push_back({after, attempt});
    const Point last = {stream, ++stream->enqueued};
    stream->looks = 0;
    if (!settings().asynchronous)
        advance(last, lock);
}

bool is_stream(void *handle)
{
    Lock lock(guard);
    Stream *stream = stream_of(handle);
    return streams.count(stream) && !stream->destroyed;
}

int device_of_stream(void *handle)
{
    Lock lock(guard);
    return stream_of(handle)->device;
}

void *own_handle(void *handle)
{
    Lock lock(guard);
    return stream_of(handle);
}

void enqueue_attempt(void *handle, Attempt attempt)
{
    Lock lock(guard);
    append(stream_of(handle), attempt, {}, lock);
}

void enqueue(void *handle, Work work)
{
    enqueue_attempt(handle, [work] { work(); return true; });
}

void wait_for_stream(void *handle)
{
    Lock lock(guard);
    Stream *stream = stream_of(handle);
    std::vector<Point> all = predecessors(stream);   // waiting for the default stream is waiting for the blocking ones
    all.push_back({stream, stream->enqueued});
    for (Point point : all)
        wait_for(point, lock);
}

void wait_for_device(int device)
{
    Lock lock(guard);
    const std::vector<Stream *> now(streams.begin(), streams.end());
    for (Stream *stream : now)
        if (stream->device == device)
            wait_for({stream, stream->enqueued}, lock);
}

void progress(void *handle)
{
    Lock lock(guard);
    Stream *stream = stream_of(handle);
    advance({stream, stream->enqueued}, lock);
}

// Whether a point is reached, for a caller that polls.
static bool looks_reached(Point point, int &looks, Lock &lock)
{
    if (point.stream->done >= point.number)
        return true;
    if (settings().asynchronous && ++looks < LOOKS)
        return false;
    return advance(point, lock);
}

static double now()
{
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}   // namespace emulation

using namespace emulation;

EXPORT cudaError_t cudaStreamCreateWithFlags(cudaStream_t *made, unsigned flags)
{
    Lock lock(guard);
    Stream *stream = new Stream{current_device(), (flags & cudaStreamNonBlocking) != 0};
    streams.insert(stream);
    *made = (cudaStream_t)stream;
    return cudaSuccess;
}

EXPORT cudaError_t cudaStreamCreate(cudaStream_t *made)
{
    return cudaStreamCreateWithFlags(made, cudaStreamDefault);
}

EXPORT cudaError_t cudaStreamCreateWithPriority(cudaStream_t *made, unsigned flags, int)
{
    return cudaStreamCreateWithFlags(made, flags);
}

// Returns at once, as CUDA does; what is queued is still done when somebody waits.
EXPORT cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    if (!is_stream(stream))
        return cudaErrorInvalidResourceHandle;
    Lock lock(guard);
    ((Stream *)stream)->destroyed = true;
    for (auto each = streams.begin(); each != streams.end();)
        each = (*each)->destroyed && (*each)->done == (*each)->enqueued ? streams.erase(each) : std::next(each);
    return cudaSuccess;
}

EXPORT cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    if (!is_stream(stream))
        return cudaErrorInvalidResourceHandle;
    count(WAITS);
    wait_for_stream(stream);
    return cudaSuccess;
}

EXPORT cudaError_t cudaDeviceSynchronize()
{
    count(WAITS);
    wait_for_device(current_device());
    return cudaSuccess;
}

EXPORT cudaError_t cudaStreamQuery(cudaStream_t handle)
{
    if (!is_stream(handle))
        return cudaErrorInvalidResourceHandle;
    count(POLLS);
    Lock lock(guard);
    Stream *stream = stream_of(handle);
    return looks_reached({stream, stream->enqueued}, stream->looks, lock) ? cudaSuccess : cudaErrorNotReady;
}

EXPORT cudaError_t cudaStreamIsCapturing(cudaStream_t, cudaStreamCaptureStatus *status)
{
    *status = cudaStreamCaptureStatusNone;
    return cudaSuccess;
}

EXPORT cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned *flags)
{
    Lock lock(guard);
    *flags = stream_of(stream)->non_blocking ? cudaStreamNonBlocking : cudaStreamDefault;
    return cudaSuccess;
}

EXPORT cudaError_t cudaStreamGetPriority(cudaStream_t, int *priority)
{
    *priority = 0;
    return cudaSuccess;
}

EXPORT cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *data)
{
    enqueue(stream, [=] { function(data); });
    return cudaSuccess;
}

EXPORT cudaError_t cudaEventCreateWithFlags(cudaEvent_t *made, unsigned)
{
    *made = (cudaEvent_t) new Event;
    return cudaSuccess;
}

EXPORT cudaError_t cudaEventCreate(cudaEvent_t *made)
{
    return cudaEventCreateWithFlags(made, 0);
}

EXPORT cudaError_t cudaEventDestroy(cudaEvent_t)
{
    return cudaSuccess;
}

EXPORT cudaError_t cudaEventRecord(cudaEvent_t handle, cudaStream_t where)
{
    if (!is_stream(where))
        return cudaErrorInvalidResourceHandle;
    Lock lock(guard);
    Event *event = (Event *)handle;
    Stream *stream = stream_of(where);
    event->point = {stream, stream->enqueued + 1};
    event->looks = 0;
    append(stream, [event] { event->seconds = now(); return true; }, {}, lock);
    return cudaSuccess;
}

EXPORT cudaError_t cudaEventSynchronize(cudaEvent_t handle)
{
    Lock lock(guard);
    Event *event = (Event *)handle;
    count(WAITS);
    if (event->point.stream)
        wait_for(event->point, lock);
    return cudaSuccess;
}

EXPORT cudaError_t cudaEventQuery(cudaEvent_t handle)
{
    count(POLLS);
    Lock lock(guard);
    Event *event = (Event *)handle;
    const bool reached = !event->point.stream || looks_reached(event->point, event->looks, lock);
    return reached ? cudaSuccess : cudaErrorNotReady;
}

EXPORT cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t from, cudaEvent_t to)
{
    Lock lock(guard);
    for (Event *event : {(Event *)from, (Event *)to})
        if (event->point.stream && event->point.stream->done < event->point.number)
            return cudaErrorNotReady;
    *milliseconds = (float)((((Event *)to)->seconds - ((Event *)from)->seconds) * 1e3);
    return cudaSuccess;
}

EXPORT cudaError_t cudaStreamWaitEvent(cudaStream_t where, cudaEvent_t handle, unsigned)
{
    if (!is_stream(where))
        return cudaErrorInvalidResourceHandle;
    Lock lock(guard);
    Event *event = (Event *)handle;
    if (event->point.stream)
        append(stream_of(where), [] { return true; }, {event->point}, lock);
    return cudaSuccess;
}
