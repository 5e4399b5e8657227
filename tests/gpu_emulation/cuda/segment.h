// The memory that the ranks of an emulated NCCL communicator share, between processes or threads alike.
#pragma once

#include <atomic>
#include <cstddef>
#include <stdexcept>
#include <string>

namespace emulation {

const int MOST_RANKS = 64;
const size_t SLOT = 256 << 10;   // bytes that a rank hands over at a time

enum Membership { ABSENT, JOINED, LEFT, ABORTED };

// Written by its rank, read by all.
struct Member {
    std::atomic<int> membership;
    int device;                    // of the machine
    std::atomic<long> written;     // chunks that the rank has put into its slot
    std::atomic<long> read;        // chunks of all ranks that it has taken
    std::atomic<size_t> size;      // of its present chunk, to find ranks that do not call the same
};

struct Header {
    std::atomic<int> joined;
    Member members[MOST_RANKS];
};

// A rank that has ended before all had met.
struct PeerIsLost : std::runtime_error {
    using std::runtime_error::runtime_error;
};

class Segment {
public:
    // A new one's name, by which processes of this machine find it as long as this one lives.
    static std::string draw();
    // Collective: returns when all ranks have joined; throws PeerIsLost.
    Segment(const std::string &name, int rank, int size, int device);
    ~Segment();
    Member &member(int rank) const { return header->members[rank]; }
    char *slot(int rank) const { return slots + rank * SLOT; }
    // Whether a rank's process has ended without leaving.
    bool is_lost(int rank) const;
    // Whether two ranks use one device, which NCCL refuses.
    bool shares_a_device() const;

    const int rank, size;

private:
    void meet(const std::string &name) const;
    void leave();

    int file;
    size_t bytes;
    Header *header;
    char *slots;
};

}   // namespace emulation
