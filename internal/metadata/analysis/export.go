package analysis

import (
	"slices"

	"github.com/tidwall/gjson"
)

// ownIDs are the members of a sample's parts that Song adds; they are not exported.
var ownIDs = map[string][]string{
	"": {"sampleId", "specimenId"}, "specimen": {"specimenId", "donorId", "sampleId"}, "donor": {"donorId", "studyId"},
}

// Exported returns the payload of a stored analysis: without the repository's own members and ids, and without empty members of its
// files and samples.
func Exported(body []byte) []byte {
	d := Parse(body)
	p, err := d.Payload()
	if err != nil {
		return body // not reached: rejected when it was submitted
	}
	p.doc = ""
	for i := range p.Files {
		p.Files[i].members = slices.DeleteFunc(p.Files[i].members, isEmpty)
	}
	for i, m := range p.members {
		if m.name == "samples" {
			p.members[i].value = exportedSamples(gjson.Parse(m.value))
		}
	}
	return []byte(p.ValidationInput())
}

// isEmpty reports whether the value of a member is null or empty.
func isEmpty(m member) bool {
	return m.value == "null" || m.value == `""` || m.value == "[]" || m.value == "{}"
}

// exportedSamples returns a list of samples without the ids that Song adds; other values are returned unchanged.
func exportedSamples(samples gjson.Result) string {
	if !samples.IsArray() {
		return samples.Raw
	}
	list := []byte{'['}
	samples.ForEach(func(_, sample gjson.Result) bool {
		if len(list) > 1 {
			list = append(list, ',')
		}
		list = append(list, exportedPart("", sample)...)
		return true
	})
	return string(append(list, ']'))
}

// exportedPart returns a sample, or its specimen or donor, without the ids that Song adds.
func exportedPart(part string, object gjson.Result) string {
	if !object.IsObject() {
		return object.Raw
	}
	members := slices.DeleteFunc(membersOf(object), func(m member) bool { return slices.Contains(ownIDs[part], m.name) })
	for i, m := range members {
		if part == "" && (m.name == "specimen" || m.name == "donor") {
			members[i].value = exportedPart(m.name, gjson.Parse(m.value))
		}
	}
	return string(append(appendMembers([]byte{'{'}, slices.DeleteFunc(members, isEmpty)), '}'))
}
