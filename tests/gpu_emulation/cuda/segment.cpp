// See segment.h. That a rank's process lives is known by a lock on the segment's file, which the system takes away from
// the dead: one byte per rank. The file has no name but that of its descriptor in the process that drew it: whatever is
// killed, nothing is left in /dev/shm.
#include "segment.h"
#include "emulation.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <mutex>
#include <set>
#include <sys/mman.h>
#include <unistd.h>

namespace emulation {

static struct flock lock_of(int rank, short type)
{
    struct flock lock = {};
    lock.l_type = type;
    lock.l_whence = SEEK_SET;
    lock.l_start = rank;
    lock.l_len = 1;
    return lock;
}

static std::mutex &guard = *new std::mutex;
static std::set<std::string> &drawn = *new std::set<std::string>;   // by this process, and not yet met at by all

static std::string path_of(int file)
{
    return "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(file);
}

std::string Segment::draw()
{
    const int file = memfd_create("emulated-nccl", MFD_CLOEXEC);
    if (file < 0)
        die("NCCL: no shared memory: %s", strerror(errno));
    std::lock_guard<std::mutex> lock(guard);
    return *drawn.insert(path_of(file)).first;
}

// Once all ranks have opened it, it is kept by them alone.
static void forget(const std::string &name)
{
    std::lock_guard<std::mutex> lock(guard);
    if (drawn.erase(name))
        close(std::stoi(name.substr(name.rfind('/') + 1)));
}

Segment::Segment(const std::string &name, int own_rank, int ranks, int device)
    : rank(own_rank), size(ranks), bytes(sizeof(Header) + ranks * SLOT)
{
    file = open(name.c_str(), O_RDWR | O_CLOEXEC);
    if (file < 0)
        throw PeerIsLost("the process that drew the id has ended");
    if (ftruncate(file, bytes))
        die("NCCL: no shared memory for %d ranks: %s", ranks, strerror(errno));
    header = (Header *)mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (header == MAP_FAILED)
        die("NCCL: cannot map shared memory for %d ranks: %s", ranks, strerror(errno));
    slots = (char *)(header + 1);
    struct flock alive = lock_of(rank, F_WRLCK);
    if (fcntl(file, F_OFD_SETLK, &alive))
        die("NCCL: rank %d of %d joins twice", rank, ranks);
    member(rank).device = device;
    member(rank).membership = JOINED;
    header->joined++;
    try {
        meet(name);
    } catch (...) {   // whoever still waits for this rank learns it from the lock
        leave();
        throw;
    }
    forget(name);
}

void Segment::meet(const std::string &name) const
{
    while (header->joined < size) {
        for (int other = 0; other < size; other++)
            if (is_lost(other))
                throw PeerIsLost("rank " + std::to_string(other) + " has ended");
        // Closed by its process when all have joined, or by its end.
        if (access(name.c_str(), F_OK) && header->joined < size)
            throw PeerIsLost("the process that drew the id has ended");
        usleep(500);
    }
}

Segment::~Segment() { leave(); }

void Segment::leave()
{
    munmap(header, bytes);
    close(file);
}

bool Segment::is_lost(int other) const
{
    struct flock lock = lock_of(other, F_WRLCK);
    return other != rank && member(other).membership == JOINED && fcntl(file, F_OFD_GETLK, &lock) == 0 &&
           lock.l_type == F_UNLCK && member(other).membership == JOINED;
}

bool Segment::shares_a_device() const
{
    for (int one = 0; one < size; one++)
        for (int other = 0; other < one; other++)
            if (member(one).device == member(other).device)
                return true;
    return false;
}

}   // namespace emulation
