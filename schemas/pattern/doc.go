// Package pattern compiles the regular expressions of JSON schemas. They mean what ECMA-262 says with its flag u, and with the additions of
// its annex B that no other dialect reads differently. What would mean something else to its author is refused by name: escapes, groups
// and classes of Perl, POSIX, Java and Go, and the few constructs of ECMA-262 that are not supported.
//
// An expression is translated for Go's engine, whose time is linear in the text. One with a look-around or a backreference is
// translated for a backtracking engine, whose time is limited.
package pattern
