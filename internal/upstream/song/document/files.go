package document

import (
	"fmt"

	"tutti/internal/base/jsontext"
	"tutti/internal/core"
)

// file is one file of an analysis.
type file struct {
	id      string
	members object
}

// files returns the files of an analysis; CodeInvalid if one of them cannot be a document.
func files(analysis object) ([]file, error) {
	items, ok := list(analysis.get(memberFiles))
	if !ok {
		return nil, core.NewError(core.CodeInvalid, "files is not a list")
	}
	out := make([]file, len(items))
	for i, item := range items {
		f := file{members: parse(item)}
		f.id = f.members.text("objectId")
		if err := core.ValidKey("objectId", f.id); err != nil {
			return nil, core.NewError(core.CodeInvalid, fmt.Sprintf("file %d: %s", i+1, core.MessageOf(err)))
		}
		out[i] = f
	}
	return out, nil
}

// ofFile returns the members of a document about a file that name the file and its study.
func ofFile(f file, rec core.Record) object {
	return append(
		object{{"object_id", f.members.get("objectId")}, {"study_id", jsontext.AppendString(nil, rec.Organization)}},
		f.members.renamed("dataType", "data_type", "fileType", "file_type", "fileAccess", "file_access")...)
}

// Files calls each with Maestro 5's documents of an analysis, one for each file, and their ids; a document is valid until each
// returns. It returns CodeInvalid, before any call of each, if a file cannot be a document. An error of each ends it and is
// returned unchanged. block is the documents' member repositories.
func Files(rec core.Record, block []byte, each func(id string, document []byte) error) error {
	analysis := parse(rec.Body)
	all, err := files(analysis)
	if err != nil {
		return err
	}
	rest := analysis.without(memberFiles, memberStudy).appendTo(nil)
	var buf, inner []byte
	for _, f := range all {
		// The type of the file is what Maestro calls the data type here.
		inner = f.members.renamed("fileName", "name", "fileType", "data_type", "fileSize", "size", "fileMd5sum", "md5sum").appendTo(inner[:0])
		doc := append(ofFile(f, rec), member{"file", inner}, member{"analysis", rest}, member{memberRepositories, block})
		buf = doc.appendTo(buf[:0])
		if err := each(f.id, buf); err != nil {
			return err
		}
	}
	return nil
}
