// See segment.h. That a rank's process lives is known by a lock on the segment's file, which the system takes away from
// the dead: one byte per rank.
#include "segment.h"
#include "emulation.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
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

Segment::Segment(const std::string &name, int own_rank, int ranks, int device)
    : rank(own_rank), size(ranks), bytes(sizeof(Header) + ranks * SLOT)
{
    file = shm_open(name.c_str(), O_CREAT | O_RDWR, 0600);
    if (file < 0 || ftruncate(file, bytes))
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
    while (header->joined < ranks)
        usleep(500);
    shm_unlink(name.c_str());   // all have it open
}

Segment::~Segment()
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
