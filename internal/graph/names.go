package graph

import (
	"bytes"
	"slices"
)

// Bounds of memberNames.
const (
	// maxNames is how many names are known of the objects of one shape, maxLearned how often one is noted: objects that have
	// nothing in common cannot be foreseen.
	maxNames   = 256
	maxLearned = 1024
)

// memberNames are those of the members of a shape's last objects, in their order. Documents of an index resemble each other, and
// to compare a name with the one that is expected costs less than to find where it ends and what it is. They are not changed.
type memberNames struct {
	// encoded are as they stand there, quotes and colon included; slots are their places among the keys, -1 for none.
	encoded    [][]byte
	keyIndices []int
}

// at returns the place of the nth name among the keys, and where its value begins, if it stands at doc[i]; else 0.
func (n *memberNames) at(nth int, doc []byte, i int) (slot, value int) {
	if n == nil || nth >= len(n.encoded) || !bytes.HasPrefix(doc[i:], n.encoded[nth]) {
		return -1, 0
	}
	return n.keyIndices[nth], i + len(n.encoded[nth])
}

// learn notes the nth name of an object. What several do at once may be lost.
func (s *selectionSet) learn(nth int, written []byte, slot int) {
	known := s.names.Load()
	if known == nil {
		known = &memberNames{}
	}
	if nth > len(known.encoded) || nth >= maxNames || s.learned.Add(1) > maxLearned {
		return
	}
	now := &memberNames{encoded: slices.Clone(known.encoded), keyIndices: slices.Clone(known.keyIndices)}
	if nth == len(now.encoded) {
		now.encoded, now.keyIndices = append(now.encoded, nil), append(now.keyIndices, 0)
	}
	now.encoded[nth], now.keyIndices[nth] = bytes.Clone(written), slot
	s.names.Store(now)
}
