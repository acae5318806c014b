/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Integer types by the kernel's names, without <linux/bpf.h>: its types
 * collide with those of the kernel that the programs declare. The names with
 * underscores are what <bpf/bpf_helpers.h> asks for.
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

#endif
