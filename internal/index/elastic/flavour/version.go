package flavour

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// Version is the version of an engine.
type Version struct{ Major, Minor, Patch int }

// ParseVersion parses major.minor or major.minor.patch, with any suffix such as -SNAPSHOT; false for another text.
func ParseVersion(text string) (Version, bool) {
	text, _, _ = strings.Cut(text, "-")
	parts := strings.Split(text, ".")
	var numbers [3]int
	if len(parts) < 2 || len(parts) > len(numbers) {
		return Version{}, false
	}
	for i, part := range parts {
		n, err := strconv.ParseUint(part, 10, 31)
		if err != nil {
			return Version{}, false
		}
		numbers[i] = int(n)
	}
	return Version{numbers[0], numbers[1], numbers[2]}, true
}

// Compare returns a negative number if v is older than w, and a positive one if it is newer.
func (v Version) Compare(w Version) int {
	return cmp.Or(cmp.Compare(v.Major, w.Major), cmp.Compare(v.Minor, w.Minor), cmp.Compare(v.Patch, w.Patch))
}

// Less reports whether v is older than w.
func (v Version) Less(w Version) bool { return v.Compare(w) < 0 }

// String returns v as major.minor.patch.
func (v Version) String() string { return fmt.Sprintf("%d.%d.%d", v.Major, v.Minor, v.Patch) }
