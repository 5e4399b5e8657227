// NCCL over shared memory. A collective is work in its stream: it is begun when the stream comes to it, and done when
// all ranks have come to theirs. Data passes through slots of the segment, a chunk at a time.
//
// Not in rank order: values are summed from the last rank to the first, each step rounded. NCCL promises no order.
// nccl.h comes with a library of 300 MB: codes and enumerations are declared here.
#include "emulation.h"
#include "segment.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <mutex>
#include <set>
#include <thread>

namespace emulation {

enum Result { SUCCESS, UNHANDLED_CUDA_ERROR, SYSTEM_ERROR, INTERNAL_ERROR, INVALID_ARGUMENT, INVALID_USAGE,
              REMOTE_ERROR };
enum Type { INT8, UINT8, INT32, UINT32, INT64, UINT64, FLOAT16, FLOAT32, FLOAT64, BFLOAT16, TYPES };
enum Operation { SUM, PROD, MAX, MIN, AVG };
const size_t SIZES[TYPES] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};

struct UniqueId {
    char name[128];
};

// The state of one rank. Operations that are still queued keep it.
struct Communicator {
    std::shared_ptr<Segment> segment;
    int device;
    long chunks = 0;                 // that have passed
    std::atomic<long> pending{0};    // operations
    std::atomic<bool> aborted{false};
    std::atomic<void *> stream{nullptr};   // of the last operation
};
using Shared = std::shared_ptr<Communicator>;

static std::mutex &guard = *new std::mutex;
static std::set<Shared *> &communicators = *new std::set<Shared *>;   // handles: NCCL's users have pointers to them

// One collective of one rank: what it hands over, and what it does with a chunk of all ranks' data.
struct Collective {
    const char *input;   // null: this rank hands over nothing
    size_t total;        // bytes that every rank hands over; the same on all
    std::function<void(const Segment &, size_t offset, size_t size)> take;
    size_t offset = 0;
    bool written = false;
};

static bool all_have(const Segment &segment, std::atomic<long> Member::*progress, long chunks)
{
    for (int rank = 0; rank < segment.size; rank++)
        if (segment.member(rank).*progress < chunks)
            return false;
    return true;
}

static void write_chunk(Communicator &communicator, const Collective &collective, size_t size)
{
    const Segment &segment = *communicator.segment;
    if (collective.input)
        memcpy(segment.slot(segment.rank), collective.input + collective.offset, size);
    segment.member(segment.rank).size = size;
    segment.member(segment.rank).written = communicator.chunks + 1;
}

static void check_sizes(const Segment &segment, size_t size)
{
    for (int rank = 0; rank < segment.size; rank++)
        if (segment.member(rank).size != size)
            die("NCCL: rank %d hands over %zu bytes where rank %d expects %zu: not the same calls in the same order",
                rank, segment.member(rank).size.load(), segment.rank, size);
}

// Goes on as far as the other ranks let it; whether the collective is over.
static bool attempt(Communicator &communicator, Collective &collective)
{
    const Segment &segment = *communicator.segment;
    while (collective.offset < collective.total && !communicator.aborted) {
        const size_t size = std::min(SLOT, collective.total - collective.offset);
        if (!collective.written) {
            if (!all_have(segment, &Member::read, communicator.chunks))
                return false;
            write_chunk(communicator, collective, size);
            collective.written = true;
        }
        if (!all_have(segment, &Member::written, communicator.chunks + 1))
            return false;
        check_sizes(segment, size);
        collective.take(segment, collective.offset, size);
        segment.member(segment.rank).read = ++communicator.chunks;
        collective.written = false;
        collective.offset += size;
    }
    communicator.pending--;
    return true;
}

static Result start(Shared *handle, void *stream, Collective collective)
{
    Shared communicator = *handle;
    if (communicator->device != device_of_stream(stream)) {
        complain("NCCL: the stream is not one of the communicator's device");
        return INVALID_USAGE;
    }
    count(COLLECTIVES);
    log("NCCL collective of %zu bytes", collective.total);
    communicator->stream = own_handle(stream);
    communicator->pending++;
    auto state = std::make_shared<Collective>(collective);
    enqueue_attempt(stream, [communicator, state] { return attempt(*communicator, *state); });
    return SUCCESS;
}

static bool is_on_device(const Shared *communicator, const void *address)
{
    const Place place = place_of(address);
    const bool found = place.kind == Memory::DEVICE && place.device == (*communicator)->device;
    if (!found)
        complain("NCCL: a buffer is not in the memory of device %d", (*communicator)->device);
    return found;
}

// Whether a peer has begun an operation that this rank has not come to.
static bool is_behind(const Communicator &communicator)
{
    const Segment &segment = *communicator.segment;
    const long mine = segment.member(segment.rank).written;
    for (int rank = 0; rank < segment.size; rank++)
        if (segment.member(rank).written > mine || segment.member(rank).read > segment.member(segment.rank).read)
            return true;
    return false;
}

// A GPU goes on by itself while its host waits for something else; here this thread does, when a peer needs it.
static void serve_peers()
{
    for (;;) {
        std::this_thread::sleep_for(std::chrono::microseconds(300));
        std::set<Shared> now;
        {
            std::lock_guard<std::mutex> lock(guard);
            for (Shared *each : communicators)
                now.insert(*each);
        }
        for (const Shared &each : now)
            if (each->pending && is_behind(*each))
                progress(each->stream);
    }
}

static void remember(Shared *communicator)
{
    static std::once_flag once;
    std::call_once(once, [] { std::thread(serve_peers).detach(); });
    std::lock_guard<std::mutex> lock(guard);
    communicators.insert(communicator);
}

static void forget(Shared *communicator, Membership how)
{
    Segment &segment = *(*communicator)->segment;
    segment.member(segment.rank).membership = how;
    std::lock_guard<std::mutex> lock(guard);
    communicators.erase(communicator);
    delete communicator;
}

// ---- reductions
template <class T> struct Number {
    typedef T Stored;
    static T load(T x) { return x; }
    static T store(T x) { return x; }
};
struct Half {
    typedef unsigned short Stored;
    static float load(Stored x) { return from_half(x); }
    static Stored store(float x) { return to_half(x); }
};
struct Bfloat {
    typedef unsigned short Stored;
    static float load(Stored x) { return from_bfloat(x); }
    static Stored store(float x) { return to_bfloat(x); }
};

template <class N> static void reduce_as(const Segment &segment, size_t skip, size_t size, char *to, int operation)
{
    typedef typename N::Stored Stored;
    for (size_t i = 0; i < size / sizeof(Stored); i++) {
        auto element = [&](int rank) { return N::load(((const Stored *)(segment.slot(rank) + skip))[i]); };
        auto total = element(segment.size - 1);
        for (int rank = segment.size - 1; rank-- > 0;) {
            const auto next = element(rank);
            total = operation == PROD ? total * next : operation == MAX ? std::max(total, next)
                    : operation == MIN ? std::min(total, next) : total + next;
            total = N::load(N::store(total));
        }
        ((Stored *)to)[i] = N::store(operation == AVG ? total / segment.size : total);
    }
}

// Reduces bytes of all slots, from ``skip`` on, to memory of this rank.
static void reduce(const Segment &segment, size_t skip, size_t size, char *to, int type, int operation)
{
    switch (type) {
    case INT8: return reduce_as<Number<int8_t>>(segment, skip, size, to, operation);
    case UINT8: return reduce_as<Number<uint8_t>>(segment, skip, size, to, operation);
    case INT32: return reduce_as<Number<int32_t>>(segment, skip, size, to, operation);
    case UINT32: return reduce_as<Number<uint32_t>>(segment, skip, size, to, operation);
    case INT64: return reduce_as<Number<int64_t>>(segment, skip, size, to, operation);
    case UINT64: return reduce_as<Number<uint64_t>>(segment, skip, size, to, operation);
    case FLOAT16: return reduce_as<Half>(segment, skip, size, to, operation);
    case FLOAT32: return reduce_as<Number<float>>(segment, skip, size, to, operation);
    case FLOAT64: return reduce_as<Number<double>>(segment, skip, size, to, operation);
    default: return reduce_as<Bfloat>(segment, skip, size, to, operation);
    }
}

}   // namespace emulation

using namespace emulation;

EXPORT const char *ncclGetErrorString(int result)
{
    switch (result) {
    case SUCCESS: return "no error";
    case INVALID_ARGUMENT: return "invalid argument";
    case INVALID_USAGE: return "invalid usage";
    case REMOTE_ERROR: return "remote process exited or there was a network error";
    default: return "an error of the emulated NCCL";
    }
}

EXPORT int ncclGetVersion(int *version)
{
    *version = 22700;
    return SUCCESS;
}

EXPORT int ncclGetUniqueId(UniqueId *id)
{
    memset(id, 0, sizeof *id);
    snprintf(id->name, sizeof id->name, "%s", Segment::draw().c_str());
    return SUCCESS;
}

EXPORT int ncclCommInitRankConfig(Shared **made, int size, UniqueId id, int rank, void *)
{
    if (size < 1 || size > MOST_RANKS || rank < 0 || rank >= size)
        return INVALID_ARGUMENT;
    std::shared_ptr<Segment> segment;
    try {
        segment = std::make_shared<Segment>(id.name, rank, size, physical_device(current_device()));
    } catch (const PeerIsLost &why) {
        complain("NCCL: rank %d of %d has not met all others: %s", rank, size, why.what());
        return REMOTE_ERROR;
    }
    if (segment->shares_a_device()) {
        complain("NCCL: two ranks use one device; rank %d of %d has device %d of the machine", rank, size,
                 physical_device(current_device()));
        return INVALID_USAGE;
    }
    auto communicator = std::make_shared<Communicator>();
    communicator->segment = segment;
    communicator->device = current_device();
    *made = new Shared(communicator);
    remember(*made);
    return SUCCESS;
}

EXPORT int ncclCommInitRank(Shared **made, int size, UniqueId id, int rank)
{
    return ncclCommInitRankConfig(made, size, id, rank, nullptr);
}

// Waits for what was begun, for ever if a peer is lost: that is what ncclCommAbort is for.
EXPORT int ncclCommDestroy(Shared *communicator)
{
    if ((*communicator)->pending)
        wait_for_stream((*communicator)->stream);
    forget(communicator, LEFT);
    return SUCCESS;
}

EXPORT int ncclCommAbort(Shared *communicator)
{
    (*communicator)->aborted = true;
    forget(communicator, ABORTED);
    return SUCCESS;
}

EXPORT int ncclCommGetAsyncError(Shared *communicator, int *result)
{
    const Segment &segment = *(*communicator)->segment;
    *result = SUCCESS;
    for (int rank = 0; rank < segment.size; rank++)
        if (segment.is_lost(rank) || (rank != segment.rank && segment.member(rank).membership == ABORTED))
            *result = REMOTE_ERROR;
    return SUCCESS;
}

EXPORT int ncclCommCount(Shared *communicator, int *size)
{
    *size = (*communicator)->segment->size;
    return SUCCESS;
}

EXPORT int ncclCommUserRank(Shared *communicator, int *rank)
{
    *rank = (*communicator)->segment->rank;
    return SUCCESS;
}

EXPORT int ncclCommCuDevice(Shared *communicator, int *device)
{
    *device = (*communicator)->device;
    return SUCCESS;
}

// Nothing here waits for a peer when it is called, so calls need not be grouped.
EXPORT int ncclGroupStart() { return SUCCESS; }
EXPORT int ncclGroupEnd() { return SUCCESS; }

EXPORT int ncclReduce(const void *from, void *to, size_t size, int type, int operation, int root, Shared *communicator,
                      void *stream)
{
    const int rank = (*communicator)->segment->rank;
    const bool receives = root < 0 || root == rank;   // all-reduce: everybody
    if (type < 0 || type >= TYPES || operation < SUM || operation > AVG || !is_on_device(communicator, from) ||
        (receives && !is_on_device(communicator, to)))
        return INVALID_ARGUMENT;
    return start(communicator, stream, {(const char *)from, size * SIZES[type],
                                        [=](const Segment &segment, size_t offset, size_t bytes) {
        if (receives)
            reduce(segment, 0, bytes, (char *)to + offset, type, operation);
    }});
}

EXPORT int ncclAllReduce(const void *from, void *to, size_t size, int type, int operation, Shared *communicator,
                         void *stream)
{
    return ncclReduce(from, to, size, type, operation, -1, communicator, stream);
}

EXPORT int ncclBroadcast(const void *from, void *to, size_t size, int type, int root, Shared *communicator,
                         void *stream)
{
    const bool sends = root == (*communicator)->segment->rank;
    if (type < 0 || type >= TYPES || !is_on_device(communicator, to) || (sends && !is_on_device(communicator, from)))
        return INVALID_ARGUMENT;
    return start(communicator, stream, {sends ? (const char *)from : nullptr, size * SIZES[type],
                                        [=](const Segment &segment, size_t offset, size_t bytes) {
        memcpy((char *)to + offset, segment.slot(root), bytes);
    }});
}

EXPORT int ncclBcast(void *buffer, size_t size, int type, int root, Shared *communicator, void *stream)
{
    return ncclBroadcast(buffer, buffer, size, type, root, communicator, stream);
}

EXPORT int ncclAllGather(const void *from, void *to, size_t size, int type, Shared *communicator, void *stream)
{
    if (type < 0 || type >= TYPES || !is_on_device(communicator, from) || !is_on_device(communicator, to))
        return INVALID_ARGUMENT;
    const size_t total = size * SIZES[type];
    return start(communicator, stream, {(const char *)from, total,
                                        [=](const Segment &segment, size_t offset, size_t bytes) {
        for (int rank = 0; rank < segment.size; rank++)
            memcpy((char *)to + rank * total + offset, segment.slot(rank), bytes);
    }});
}

// Every rank hands over a part for each rank, and takes the reduction of its own.
EXPORT int ncclReduceScatter(const void *from, void *to, size_t size, int type, int operation, Shared *communicator,
                             void *stream)
{
    if (type < 0 || type >= TYPES || operation < SUM || operation > AVG || !is_on_device(communicator, from) ||
        !is_on_device(communicator, to))
        return INVALID_ARGUMENT;
    const size_t part = size * SIZES[type];
    return start(communicator, stream, {(const char *)from, part * (*communicator)->segment->size,
                                        [=](const Segment &segment, size_t offset, size_t bytes) {
        const size_t first = std::max(offset, segment.rank * part);
        const size_t end = std::min(offset + bytes, (segment.rank + 1) * part);
        if (first < end)
            reduce(segment, first - offset, end - first, (char *)to + (first - segment.rank * part), type, operation);
    }});
}
