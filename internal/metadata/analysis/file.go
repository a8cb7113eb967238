package analysis

import (
	"slices"
	"strconv"

	"github.com/google/uuid"
	"github.com/tidwall/gjson"

	"tutti/internal/core"
)

// MaxFileNameBytes bounds the name of a file that is submitted: PostgreSQL's indexes do not accept more than about 2,700 bytes.
const MaxFileNameBytes = 1024

// File is a file of an analysis. A value is "" when the file does not have it as text.
type File struct {
	Name, MD5, Access string // MD5 in lower case
	// ObjectID is the id of a stored file; for a submitted one SetObjectIDs corrects it.
	ObjectID string
	members  []member
}

// ObjectID returns the id of a file's object. It is stable and equals Song's: the version 5 UUID of both ids joined by a colon, in
// the name space of object identifiers (RFC 9562, appendix A).
func ObjectID(analysis, fileName string) string {
	return uuid.NewSHA1(uuid.NameSpaceOID, []byte(analysis+":"+fileName)).String()
}

// FindFile returns the JSON text of a file of a stored analysis by its object id, ok false when there is none.
func FindFile(body []byte, objectID string) (found string, ok bool) {
	gjson.GetBytes(body, "files").ForEach(func(_, f gjson.Result) bool {
		if f.Get("objectId").Str == objectID {
			found, ok = f.Raw, true
		}
		return !ok
	})
	return found, ok
}

// SetFiles replaces the files, which keep their object ids.
func (p *Payload) SetFiles(files []File) error {
	list := []byte{'['}
	for i, f := range files {
		if i > 0 {
			list = append(list, ',')
		}
		list = append(appendMembers(append(list, '{'), f.members), '}')
	}
	p.doc, p.Files = "", nil
	err := p.readFiles(gjson.ParseBytes(append(list, ']')))
	for i := range p.Files {
		p.Files[i].ObjectID = files[i].ObjectID
	}
	return err
}

// SetObjectIDs sets the object ids of the files of an analysis: that of the file with the same name in before, which may come from
// another repository, else ObjectID. An id that the client sent counts only if before has a file with that id and name: analyses of
// another repository may have several files of one name.
func (p *Payload) SetObjectIDs(id string, before []File) {
	stored := make(map[string][]string, len(before))
	for _, f := range before {
		stored[f.Name] = append(stored[f.Name], f.ObjectID)
	}
	for i := range p.Files {
		f := &p.Files[i]
		ids := stored[f.Name]
		switch {
		case len(ids) == 0:
			f.ObjectID = ObjectID(id, f.Name)
		case !slices.Contains(ids, f.ObjectID):
			f.ObjectID = ids[0]
		}
	}
}

// CheckFiles returns the violations of a validated payload's files that the repository could not store.
func (p *Payload) CheckFiles() error {
	if !p.whole {
		return ViolationError(unstorableFiles, []core.Violation{{Pointer: "/files", Message: "must be an array of objects", Keyword: "type"}})
	}
	var faults []core.Violation
	for i, f := range p.Files {
		pointer := "/files/" + strconv.Itoa(i)
		switch {
		case f.Name == "":
			faults = append(faults, core.Violation{Pointer: pointer + "/fileName", Message: "must not be empty", Keyword: "minLength"})
		case len(f.Name) > MaxFileNameBytes:
			faults = append(faults, core.Violation{
				Pointer: pointer + "/fileName", Message: "must have at most 1024 bytes", Keyword: "maxLength",
			})
		case f.MD5 == "":
			faults = append(faults, core.Violation{Pointer: pointer + "/fileMd5sum", Message: "must be an MD5 sum", Keyword: "minLength"})
		}
	}
	if len(faults) > 0 {
		return ViolationError(unstorableFiles, faults)
	}
	return p.checkNames()
}

// unstorableFiles starts the message of an error with violations of files.
const unstorableFiles = "the analysis' files cannot be stored"

// checkNames returns CodeConflict when two files have the same name.
func (p *Payload) checkNames() error {
	first := make(map[string]int, len(p.Files))
	var faults []core.Violation
	var names []string
	for i, f := range p.Files {
		before, twice := first[f.Name]
		if !twice {
			first[f.Name] = i
			continue
		}
		names = append(names, f.Name)
		faults = append(faults, core.Violation{
			Pointer: "/files/" + strconv.Itoa(i) + "/fileName",
			Message: "is also the name of /files/" + strconv.Itoa(before), Keyword: "duplicate",
		})
	}
	return DuplicateFilesError("the analysis has several files with the same name: ", names, faults)
}
