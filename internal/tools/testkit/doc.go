// Package testkit has the test doubles for tests and the demo: in-process servers that speak Song's and Lyric's protocols with fault
// injection, a fault proxy, and generators of realistic analyses and clinical records. It contains no rules of the product. Only tests
// and the demo may import it; it must not import any package of tutti, so that bugs of the product are not repeated in its tests.
package testkit
