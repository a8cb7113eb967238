// Package flavour describes the search engines that the adapter supports: the oldest version of each, and what the adapter does
// differently for it.
package flavour
