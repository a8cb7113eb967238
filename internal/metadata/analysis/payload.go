package analysis

import (
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"tutti/internal/base/jsontext"
)

// Payload is an analysis as submitted, without the members that the repository adds: a client may send back a document that it
// has read.
type Payload struct {
	// Files are the files in their order, none when files is not an array of objects.
	Files   []File
	members []member
	// doc is the payload as submitted, "" when members and Files differ from it.
	doc string
	// whole is false when files is not an array of objects, which no type accepts.
	whole bool
}

// isReserved reports whether only the repository sets a top-level member; a client's value is ignored.
func isReserved(name string) bool {
	switch name {
	case "analysisId", "analysisState", "createdAt", "updatedAt", "firstPublishedAt", "publishedAt", "analysisStateHistory":
		return true
	}
	return false
}

// newPayload parses doc, the result of parseObject.
func newPayload(doc string) (Payload, error) {
	p := Payload{members: make([]member, 0, fewMembers), doc: doc}
	for _, m := range membersOf(gjson.Parse(doc)) {
		if isReserved(m.name) {
			p.doc = ""
			continue
		}
		p.members = append(p.members, m)
		if m.name == "files" {
			if err := p.readFiles(gjson.Parse(m.value)); err != nil {
				return Payload{}, err
			}
		}
	}
	return p, nil
}

func (p *Payload) readFiles(files gjson.Result) error {
	if !files.IsArray() {
		return nil
	}
	p.whole = true
	var err error
	files.ForEach(func(_, element gjson.Result) bool {
		if !element.IsObject() {
			p.Files, p.whole = nil, false
			return false
		}
		f := File{members: membersOf(element), ObjectID: stringOf(element.Get("objectId").Raw)}
		sent := len(f.members)
		f.members = slices.DeleteFunc(f.members, func(m member) bool {
			return m.name == "objectId" || m.name == "analysisId" || m.name == "studyId"
		})
		if len(f.members) < sent {
			p.doc = ""
		}
		for _, m := range f.members {
			switch m.name {
			case "fileName":
				f.Name = stringOf(m.value)
			case "fileMd5sum":
				f.MD5 = strings.ToLower(stringOf(m.value))
			case "fileAccess":
				f.Access = stringOf(m.value)
			}
		}
		if !Storable(f.Name) || !Storable(f.MD5) || !Storable(f.Access) {
			err = parsingError("the name, the MD5 sum or the access of a file contains a NUL character")
			return false
		}
		p.Files = append(p.Files, f)
		return true
	})
	return err
}

// stringOf returns the value of a JSON string, "" for any other value.
func stringOf(value string) string {
	if v := gjson.Parse(value); v.Type == gjson.String {
		return v.Str
	}
	return ""
}

// value returns the JSON text of a member, "" when it is missing.
func (p *Payload) value(name string) string {
	for _, m := range p.members {
		if m.name == name {
			return m.value
		}
	}
	return ""
}

// Complete returns the payload with the study of the path and with the files of the stored document where the payload has none:
// Song's clients update an analysis this way.
func (p *Payload) Complete(study string, stored *Document) (Payload, error) {
	whole := *p
	whole.members, whole.doc = slices.Clone(p.members), ""
	if p.value("studyId") == "" {
		whole.members = append(whole.members, member{name: "studyId", key: `"studyId"`, value: quoteJSON(study)})
	}
	if p.value("files") != "" {
		return whole, nil
	}
	files := gjson.Get(stored.submission(true), "files")
	if !files.Exists() {
		return whole, nil
	}
	whole.members = append(whole.members, member{name: "files", key: `"files"`, value: files.Raw})
	return whole, whole.readFiles(files)
}

// CheckStudy returns CodeConflict when the payload names another study. A value that is not a string is left to the validator.
func (p *Payload) CheckStudy(study string) error {
	if v := gjson.Parse(p.value("studyId")); v.Type == gjson.String && v.Str != study {
		return studyMismatch()
	}
	return nil
}

// ValidationInput returns the payload as it is passed to the validator.
func (p *Payload) ValidationInput() string {
	if p.doc != "" {
		return p.doc
	}
	doc := append(make([]byte, 0, p.size()), '{')
	for _, m := range p.members {
		if m.name != "files" || !p.whole {
			doc = appendMember(doc, m.key, m.value)
			continue
		}
		doc = append(appendMember(doc, m.key, ""), '[')
		for i, f := range p.Files {
			if i > 0 {
				doc = append(doc, ',')
			}
			doc = append(appendMembers(append(doc, '{'), f.members), '}')
		}
		doc = append(doc, ']')
	}
	return string(append(doc, '}'))
}

// rest returns the members of the stored document after its own ones, each preceded by a comma: those submitted, and in each
// file the ids that the repository adds. SetObjectIDs must have been called.
func (p *Payload) rest(study, id string) []byte {
	const perFile = 160 // length of a file's ids
	doc := make([]byte, 0, p.size()+len(p.Files)*(perFile+len(study)))
	owner := `,"studyId":` + quoteJSON(study) + `,"analysisId":` + quoteJSON(id)
	for _, m := range p.members {
		switch {
		case m.name == "studyId" || m.name == "analysisType": // among the document's own
		case m.name == "files" && p.whole:
			doc = append(doc, `,"files":[`...)
			for i, f := range p.Files {
				if i > 0 {
					doc = append(doc, ',')
				}
				doc = jsontext.AppendString(append(doc, `{"objectId":`...), f.ObjectID)
				doc = append(appendMembers(append(doc, owner...), f.members), '}')
			}
			doc = append(doc, ']')
		default:
			doc = append(append(doc, ','), m.key...)
			doc = append(append(doc, ':'), m.value...)
		}
	}
	return doc
}

func (p *Payload) size() int {
	size := 2
	for _, m := range p.members {
		size += len(m.key) + len(m.value) + 2
	}
	return size
}
