/* SPDX-License-Identifier: MIT */
/* Conversion between float and half: all halves, and floats on and around every boundary. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "hgemm.h"
#include "util.h"

/* The value of a half, from its definition. */
static double value_of(unsigned bits)
{
    int exponent = bits >> 10 & 31;
    double fraction = bits & 1023, sign = bits & 0x8000 ? -1 : 1;
    if (exponent == 31)
        return (bits & 1023) ? NAN : sign * INFINITY;
    return sign * (exponent ? ldexp(1024 + fraction, exponent - 25) : ldexp(fraction, -24));
}

static void every_half_survives(void **state)
{
    (void)state;
    for (unsigned bits = 0; bits < 65536; bits++) {
        float value = hgemm_half_to_float((uint16_t)bits);
        double expected = value_of(bits);
        unsigned back = hgemm_half_from_float(value);
        if (isnan(expected)) {
            assert_true(isnan(value));
            assert_true((back & 0x7fff) > 0x7c00);
            assert_int_equal(back & 0x8000, bits & 0x8000);
            assert_true(back & 0x200); /* quiet */
        } else {
            assert_true(value == expected && !signbit(value) == !(bits & 0x8000));
            assert_int_equal(back, bits);
        }
    }
}

/* Between neighbours x < y: at most half-way gives x or y by evenness, a float to either side of
 * half-way the nearer one. Beyond the largest half the next neighbour would be 65536. */
static void rounding_is_to_nearest_even(void **state)
{
    (void)state;
    for (unsigned bits = 0; bits < 0x7c00; bits++) {
        double x = value_of(bits), y = bits == 0x7bff ? 65536 : value_of(bits + 1);
        float middle = (float)((x + y) / 2);
        unsigned even = bits & 1 ? bits + 1 : bits;
        assert_int_equal(hgemm_half_from_float(middle), even);
        assert_int_equal(hgemm_half_from_float(-middle), even | 0x8000);
        assert_int_equal(hgemm_half_from_float(nextafterf(middle, 0)), bits);
        assert_int_equal(hgemm_half_from_float(nextafterf(middle, INFINITY)), bits + 1);
        assert_int_equal(hgemm_half_from_float(nextafterf((float)x, INFINITY)), bits);
        assert_int_equal(hgemm_half_from_float(nextafterf((float)y, 0)), bits + 1);
    }
}

static void extremes(void **state)
{
    (void)state;
    assert_int_equal(hgemm_half_from_float(0.0f), 0);
    assert_int_equal(hgemm_half_from_float(-0.0f), 0x8000);
    assert_int_equal(hgemm_half_from_float(INFINITY), 0x7c00);
    assert_int_equal(hgemm_half_from_float(-INFINITY), 0xfc00);
    assert_int_equal(hgemm_half_from_float(3.402823466e38f), 0x7c00);
    assert_int_equal(hgemm_half_from_float(1.401298464e-45f), 0);
    assert_int_equal(hgemm_half_from_float(-1.401298464e-45f), 0x8000);
    const uint32_t nans[] = {0x7f800001, 0xff800001, 0x7fffffff, 0x7fc00000, 0x7f802000};
    for (int i = 0; i < 5; i++) {
        float value;
        memcpy(&value, &nans[i], sizeof value);
        unsigned half = hgemm_half_from_float(value);
        assert_true((half & 0x7fff) > 0x7c00);
        assert_int_equal(half & 0x8000, nans[i] >> 16 & 0x8000);
    }
}

/* Any float: no half is nearer. */
static void random_floats_round_to_the_nearest(void **state)
{
    (void)state;
    rng_t rng = {test_seed()};
    for (int i = 0; i < 1000000; i++) {
        uint32_t bits = (uint32_t)rng_next(&rng);
        if (i % 2) /* exponents that a half has, and a few around */
            bits = (bits & 0x807fffffu) | (uint32_t)rng_between(&rng, 100, 144) << 23;
        float value;
        memcpy(&value, &bits, sizeof value);
        if (isnan(value))
            continue;
        unsigned half = hgemm_half_from_float(value);
        assert_int_equal(half >> 15, bits >> 31);
        double magnitude = fabs((double)value);
        unsigned got = half & 0x7fff;
        if (magnitude >= 65520) {
            assert_int_equal(got, 0x7c00);
            continue;
        }
        assert_true(got < 0x7c00);
        double distance = fabs(value_of(got) - magnitude);
        if (got > 0)
            assert_true(distance <= fabs(value_of(got - 1) - magnitude));
        if (got < 0x7bff)
            assert_true(distance <= fabs(value_of(got + 1) - magnitude));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_half_survives),
        cmocka_unit_test(rounding_is_to_nearest_even),
        cmocka_unit_test(extremes),
        cmocka_unit_test(random_floats_round_to_the_nearest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
