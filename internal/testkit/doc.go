// Package testkit owns the stand-ins that tests and the demo run against: an in-process server that speaks Song's
// protocol and can be told to fail, a fault proxy, and generators of realistic analyses. It holds no rule of the
// product. Only tests and the demo may import it; it must not import any package of tutti, so that a fault of the
// product is not repeated in its tests.
package testkit
