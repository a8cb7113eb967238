package definition

import "bytes"

// merge reads src over dst, both objects: objects are merged, anything else of src takes the place of dst's, and says so.
// What says nothing (null, at the top also an empty text) takes nobody's place. last is what is said of src's file.
func merge(dst, src *node, pointer, last string, f *findings) {
	at := make(map[string]int, len(dst.members))
	for i, m := range dst.members {
		at[m.name] = i
	}
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
			merge(old, m.value, below(pointer, m.name), last, f)
		case m.value.kind == kindNull, pointer == "" && m.value.absent():
		case old.kind == kindNull, pointer == "" && old.absent():
			dst.members[i].value = m.value
		case bytes.Equal(old.raw(), m.value.raw()):
		default:
			f.warnAt(below(pointer, m.name), old.file, "is also set in "+m.value.file+", "+last)
			dst.members[i].value = m.value
		}
	}
}
