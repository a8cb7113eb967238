package definition

import "bytes"

// merger merges objects.
type merger struct {
	f *findings
	// at indexes the members of each merged object: many small files merged into a large one must not scan its members each time.
	at map[*node]map[string]int
}

func newMerger(f *findings) *merger { return &merger{f: f, at: map[*node]map[string]int{}} }

// merge merges src into dst, both objects: objects are merged recursively, any other value of src replaces that of dst with a
// warning. Values without content (null; at the top also an empty string) replace nothing. last describes src's file in the
// warning.
func (g *merger) merge(dst, src *node, pointer, last string) {
	at := g.places(dst)
	for _, m := range src.members {
		i, is := at[m.name]
		if !is {
			at[m.name] = len(dst.members)
			dst.members = append(dst.members, m)
			continue
		}
		old := dst.members[i].value
		switch {
		case old.kind == kindObject && m.value.kind == kindObject:
			g.merge(old, m.value, within(pointer, m.name), last)
		case m.value.kind == kindNull, pointer == "" && m.value.absent():
		case old.kind == kindNull, pointer == "" && old.absent():
			dst.members[i].value = m.value
		case bytes.Equal(old.raw(), m.value.raw()):
		default:
			g.f.warnAt(within(pointer, m.name), old.file, "is also set in "+m.value.file+", "+last)
			dst.members[i].value = m.value
		}
	}
}

func (g *merger) places(n *node) map[string]int {
	at, is := g.at[n]
	if !is {
		at = make(map[string]int, len(n.members))
		for i, m := range n.members {
			at[m.name] = i
		}
		g.at[n] = at
	}
	return at
}
