/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Integer types with the kernel's names, without <linux/bpf.h>, whose types
 * collide with those of the kernel that the programs declare. The names with
 * underscores are those that <bpf/bpf_helpers.h> needs. Also arithmetic helpers
 * shared by all algorithms.
 */
#ifndef KNEE_TYPES_H
#define KNEE_TYPES_H

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef int s32;
typedef long long s64;
typedef _Bool bool;
#define true 1
#define false 0

typedef u8 __u8;
typedef u16 __u16;
typedef u32 __u32;
typedef u64 __u64;
typedef s32 __s32;
typedef s64 __s64;
typedef u16 __be16;
typedef u32 __be32;
typedef u32 __wsum;

#define U32_MAX 0xffffffffU
#define U64_MAX 0xffffffffffffffffULL
#define NS_PER_US 1000ULL
#define NS_PER_MS 1000000ULL
#define NS_PER_S 1000000000ULL

/* Always inlined, because a BPF program has few registers for arguments, and
 * its functions are verified without their caller. */
#define part static __attribute__((always_inline)) inline

part u64 least(u64 a, u64 b)
{
	return a < b ? a : b;
}

part u64 most(u64 a, u64 b)
{
	return a > b ? a : b;
}

/* a - b, or zero. */
part u64 above(u64 a, u64 b)
{
	return a > b ? a - b : 0;
}

#endif
