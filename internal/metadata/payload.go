package metadata

import (
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"github.com/tidwall/gjson"

	"tutti/internal/base/jsontext"
	"tutti/internal/core"
)

// maxFileNameBytes bounds a file name: PostgreSQL's indexes do not accept more than about 2,700 bytes.
const maxFileNameBytes = 1024

// file is one of a payload's files.
type file struct {
	name, md5, access string // md5 in lower case
	// objectID is the id of a stored file; for a submitted one setObjectIDs corrects it.
	objectID string
	members  []member
}

// payload is an analysis as submitted, without the members that the repository adds: a client may send back a document that it
// has read.
type payload struct {
	members []member
	files   []file
	// doc is the payload as submitted, "" when members and files differ from it.
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
func newPayload(doc string) (payload, error) {
	p := payload{members: make([]member, 0, fewMembers), doc: doc}
	for _, m := range membersOf(gjson.Parse(doc)) {
		if isReserved(m.name) {
			p.doc = ""
			continue
		}
		p.members = append(p.members, m)
		if m.name == "files" {
			if err := p.readFiles(gjson.Parse(m.value)); err != nil {
				return payload{}, err
			}
		}
	}
	return p, nil
}

func (p *payload) readFiles(files gjson.Result) error {
	if !files.IsArray() {
		return nil
	}
	p.whole = true
	var err error
	files.ForEach(func(_, element gjson.Result) bool {
		if !element.IsObject() {
			p.files, p.whole = nil, false
			return false
		}
		f := file{members: membersOf(element), objectID: stringOf(element.Get("objectId").Raw)}
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
				f.name = stringOf(m.value)
			case "fileMd5sum":
				f.md5 = strings.ToLower(stringOf(m.value))
			case "fileAccess":
				f.access = stringOf(m.value)
			}
		}
		if !storable(f.name) || !storable(f.md5) || !storable(f.access) {
			err = parsingError("the name, the MD5 sum or the access of a file contains a NUL character")
			return false
		}
		p.files = append(p.files, f)
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
func (p *payload) value(name string) string {
	for _, m := range p.members {
		if m.name == name {
			return m.value
		}
	}
	return ""
}

// complete returns the payload with the study of the path and with the files of the stored document where the payload has none:
// Song's clients update an analysis this way.
func (p *payload) complete(study string, stored *document) (payload, error) {
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

// checkStudy returns CodeConflict when the payload names another study. A value that is not a string is left to the validator.
func (p *payload) checkStudy(study string) error {
	if v := gjson.Parse(p.value("studyId")); v.Type == gjson.String && v.Str != study {
		return studyMismatch()
	}
	return nil
}

func studyMismatch() error {
	return newError(core.CodeConflict, idStudyMismatch, "the payload's studyId is not that of the path")
}

// validationInput returns the payload as it is passed to the validator.
func (p *payload) validationInput() string {
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
		for i, f := range p.files {
			if i > 0 {
				doc = append(doc, ',')
			}
			doc = append(appendMembers(append(doc, '{'), f.members), '}')
		}
		doc = append(doc, ']')
	}
	return string(append(doc, '}'))
}

// setObjectIDs sets the object ids of the files of an analysis: that of the file with the same name in before, which may come from
// another repository, else objectID. An id that the client sent counts only if before has a file with that id and name: analyses of
// another repository may have several files of one name.
func (p *payload) setObjectIDs(id string, before []file) {
	stored := make(map[string][]string, len(before))
	for _, f := range before {
		stored[f.name] = append(stored[f.name], f.objectID)
	}
	for i := range p.files {
		f := &p.files[i]
		ids := stored[f.name]
		switch {
		case len(ids) == 0:
			f.objectID = objectID(id, f.name)
		case !slices.Contains(ids, f.objectID):
			f.objectID = ids[0]
		}
	}
}

// rest returns the members of the stored document after its own ones, each preceded by a comma: those submitted, and in each
// file the ids that the repository adds. setObjectIDs must have been called.
func (p *payload) rest(study, id string) []byte {
	const perFile = 160 // length of a file's ids
	doc := make([]byte, 0, p.size()+len(p.files)*(perFile+len(study)))
	owner := `,"studyId":` + quoteJSON(study) + `,"analysisId":` + quoteJSON(id)
	for _, m := range p.members {
		switch {
		case m.name == "studyId" || m.name == "analysisType": // among the document's own
		case m.name == "files" && p.whole:
			doc = append(doc, `,"files":[`...)
			for i, f := range p.files {
				if i > 0 {
					doc = append(doc, ',')
				}
				doc = jsontext.AppendString(append(doc, `{"objectId":`...), f.objectID)
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

func (p *payload) size() int {
	size := 2
	for _, m := range p.members {
		size += len(m.key) + len(m.value) + 2
	}
	return size
}

// objectID returns the id of a file's object. It is stable and equals Song's: the version 5 UUID of both ids joined by a colon, in
// the name space of object identifiers (RFC 9562, appendix A).
func objectID(analysis, fileName string) string {
	return uuid.NewSHA1(uuid.NameSpaceOID, []byte(analysis+":"+fileName)).String()
}

// checkFiles returns the violations of a validated payload's files that the repository could not store.
func (p *payload) checkFiles() error {
	if !p.whole {
		return violationError(unstorableFiles, []core.Violation{{Pointer: "/files", Message: "must be an array of objects", Keyword: "type"}})
	}
	var faults []core.Violation
	for i, f := range p.files {
		pointer := "/files/" + strconv.Itoa(i)
		switch {
		case f.name == "":
			faults = append(faults, core.Violation{Pointer: pointer + "/fileName", Message: "must not be empty", Keyword: "minLength"})
		case len(f.name) > maxFileNameBytes:
			faults = append(faults, core.Violation{
				Pointer: pointer + "/fileName", Message: "must have at most 1024 bytes", Keyword: "maxLength",
			})
		case f.md5 == "":
			faults = append(faults, core.Violation{Pointer: pointer + "/fileMd5sum", Message: "must be an MD5 sum", Keyword: "minLength"})
		}
	}
	if len(faults) > 0 {
		return violationError(unstorableFiles, faults)
	}
	return p.checkNames()
}

// unstorableFiles starts the message of an error with violations of files.
const unstorableFiles = "the analysis' files cannot be stored"

func violationError(what string, faults []core.Violation) *core.Error {
	err := newError(core.CodeInvalid, idViolation, what+": "+faults[0].Pointer+" "+faults[0].Message)
	err.Violations = faults[:min(len(faults), maxViolations)]
	return err
}

// checkNames returns CodeConflict when two files have the same name.
func (p *payload) checkNames() error {
	first := make(map[string]int, len(p.files))
	var faults []core.Violation
	var names []string
	for i, f := range p.files {
		before, twice := first[f.name]
		if !twice {
			first[f.name] = i
			continue
		}
		names = append(names, f.name)
		faults = append(faults, core.Violation{
			Pointer: "/files/" + strconv.Itoa(i) + "/fileName",
			Message: "is also the name of /files/" + strconv.Itoa(before), Keyword: "duplicate",
		})
	}
	return duplicateError("the analysis has several files with the same name: ", names, faults)
}

// duplicateError returns the error for duplicate files, nil when there are none.
func duplicateError(message string, names []string, faults []core.Violation) error {
	list := make([]string, 0, len(names))
	for _, name := range names {
		list = append(list, strconv.Quote(truncated(name)))
	}
	return filesError(idDuplicateFile, message, list, faults)
}

// filesError returns the CodeConflict of some files, whose names follow message; nil when there are no faults.
func filesError(errorID, message string, names []string, faults []core.Violation) error {
	if len(faults) == 0 {
		return nil
	}
	const named = 5
	message += strings.Join(names[:min(len(names), named)], ", ")
	if more := len(names) - named; more > 0 {
		message += " and " + strconv.Itoa(more) + " more"
	}
	err := newError(core.CodeConflict, errorID, message)
	err.Violations = faults[:min(len(faults), maxViolations)]
	return err
}
