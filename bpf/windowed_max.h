/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The windowed maximum of crates/knee-cc/src/bbr/filter.rs: three entries with
 * falling values and rising times, in rounds or microseconds; the first one
 * holds the maximum.
 */
#ifndef KNEE_WINDOWED_MAX_H
#define KNEE_WINDOWED_MAX_H

#include "types.h"

struct max_entry {
	u32 at, value;
};

part void reset_max(struct max_entry *m, u32 now, u32 value)
{
	struct max_entry entry = { now, value };

	m[0] = m[1] = m[2] = entry;
}

part void update_max(struct max_entry *m, u32 window, u32 now, u32 value)
{
	struct max_entry new = { now, value };
	u32 age;

	if (value >= m[0].value || now - m[2].at > window) {
		reset_max(m, now, value);
		return;
	}
	if (value >= m[1].value)
		m[1] = m[2] = new;
	else if (value >= m[2].value)
		m[2] = new;
	age = now - m[0].at;
	if (age > window) {
		m[0] = m[1];
		m[1] = m[2];
		m[2] = new;
		if (now - m[0].at > window) {
			m[0] = m[1];
			m[1] = m[2];
			m[2] = new;
		}
	} else if (m[1].at == m[0].at && age > window / 4) {
		m[1] = m[2] = new;
	} else if (m[2].at == m[1].at && age > window / 2) {
		m[2] = new;
	}
}

#endif
