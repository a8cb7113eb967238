// Package testkit owns the stand-ins that tests and the demo run against: in-process servers that speak Song's and Lyric's
// protocols and can be told to fail, a fault proxy, and generators of realistic analyses and clinical records. It holds no
// rule of the product. Only tests and the demo may import it; it must not import any package of tutti, so that a fault of
// the product is not repeated in its tests.
package testkit
