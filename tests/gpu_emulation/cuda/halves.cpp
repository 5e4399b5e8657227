// Numbers of 16 bits, rounded to the nearest, of two as near to the even one.
#include "emulation.h"

#include <cstring>

namespace emulation {

template <class To, class From> static To bits_of(From value)
{
    To bits;
    static_assert(sizeof bits == sizeof value);
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

// g++ knows the format itself: its conversions are those of the IEEE.
float from_half(unsigned short bits)
{
    return bits_of<_Float16>(bits);
}

unsigned short to_half(float value)
{
    return bits_of<unsigned short>((_Float16)value);
}

float from_bfloat(unsigned short bits)
{
    return bits_of<float>((unsigned)bits << 16);
}

unsigned short to_bfloat(float value)
{
    const unsigned bits = bits_of<unsigned>(value);
    if ((bits & 0x7fffffffu) > 0x7f800000u)   // no number, and it must stay none
        return bits >> 16 | 0x40u;
    return (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
}

}   // namespace emulation
