package upstream

import (
	"bytes"
	"encoding/json"

	"tutti/internal/core"
)

// RepositoriesMember is the member that tutti adds to every document (CONTRACT section 1, Document).
const RepositoriesMember = "repositories"

const repositories = RepositoriesMember

// RepositoriesBlock makes the value of a document's member repositories: a JSON array with one block, made once per
// repository.
func RepositoriesBlock(r core.Repository) []byte {
	block := []struct {
		Code         string              `json:"code"`
		Name         string              `json:"name"`
		Organization string              `json:"organization"`
		Country      string              `json:"country"`
		URL          string              `json:"url"`
		Type         core.RepositoryType `json:"type"`
	}{{r.Code, r.Name, r.Organization, r.Country, r.URL, r.Type}}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(block); err != nil {
		return []byte("[]") // not reached: strings always encode
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// Splice appends the Document of a record to dst: body's own bytes with "repositories":block right behind the opening
// brace, in the place of any such member that the record had. body is a Record's Body, one valid JSON object; bytes
// that are none are appended as they are, for the index to refuse. block is from RepositoriesBlock.
func Splice(dst, body, block []byte) []byte {
	return splice(dst, body, block, mayHaveRepositories(body))
}

// SpliceRecord is Splice for a record of which is known whether it has a member repositories.
func SpliceRecord(dst []byte, rec core.Record, block []byte) []byte {
	return splice(dst, rec.Body, block, rec.HasRepositories)
}

func splice(dst, body, block []byte, has bool) []byte {
	if len(body) < 2 || body[0] != '{' {
		return append(dst, body...)
	}
	first := skipSpace(body, 1)
	if first >= len(body) {
		return append(dst, body...)
	}
	dst = append(dst, `{"`+repositories+`":`...)
	dst = append(dst, block...)
	if has {
		return appendOthers(dst, body)
	}
	if body[first] != '}' {
		dst = append(dst, ',')
	}
	return append(dst, body[1:]...)
}

// mayHaveRepositories reports whether body may have a member repositories: its name is there, or an escape that can
// spell a letter.
func mayHaveRepositories(body []byte) bool {
	return bytes.Contains(body, []byte(repositories)) || bytes.Contains(body, []byte(`\u`))
}

// appendOthers appends the members of body but repositories, each behind a comma, and the closing brace. The slow
// path: few records have that word.
func appendOthers(dst, body []byte) []byte {
	i := 1
	for {
		from := skipSpace(body, i)
		if from >= len(body) || body[from] == '}' {
			return append(dst, '}')
		}
		value, k := scanKey(body, from)
		if value < 0 {
			return append(append(dst, ','), body[from:]...)
		}
		end := scanValue(body, value, 1)
		if end < 0 {
			return append(append(dst, ','), body[from:]...)
		}
		if !k.is(body, repositories) {
			dst = append(dst, ',')
			dst = append(dst, body[from:end]...)
		}
		if i = skipSpace(body, end); i >= len(body) || body[i] != ',' {
			return append(dst, '}')
		}
		i++
	}
}
