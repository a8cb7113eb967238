package migrate

import (
	"os"
	"regexp"
	"strings"
)

// assignment matches a line of a .env file.
var assignment = regexp.MustCompile(`^(?:export\s+)?([A-Za-z_][A-Za-z0-9_.\-\[\]]*)\s*[=:]\s*(.*)$`)

// readEnv reads a .env file: NAME=value, also after export, with comments, and with quotes, within which a value may have several lines.
func readEnv(path string) ([]variable, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, unreadable(path, err)
	}
	var list []variable
	lines := strings.Split(strings.ReplaceAll(strings.TrimPrefix(string(data), "\ufeff"), "\r\n", "\n"), "\n")
	for i := 0; i < len(lines); i++ {
		line := strings.TrimSpace(lines[i])
		if line == "" || line[0] == '#' {
			continue
		}
		parts := assignment.FindStringSubmatch(line)
		if parts == nil {
			return nil, invalid(path, "line %d: is not NAME=value", i+1)
		}
		name, value := parts[1], parts[2]
		if value == "" || !strings.Contains(`"'`, value[:1]) {
			value, _, _ = strings.Cut(" "+value, " #")
			list = append(list, variable{name: name, value: value})
			continue
		}
		first := i
		text, closed := quoted(value)
		for !closed && i+1 < len(lines) {
			i++
			value += "\n" + lines[i]
			text, closed = quoted(value)
		}
		if !closed {
			return nil, invalid(path, "line %d: the quotes of %s are not closed", first+1, name)
		}
		list = append(list, variable{name: name, value: text})
	}
	return list, nil
}

// quoted returns the text within the quotes that s starts with; false when they are not closed. Only " has escapes.
func quoted(s string) (string, bool) {
	quote := s[0]
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] == quote:
			return b.String(), true
		case s[i] == '\\' && quote == '"' && i+1 < len(s):
			i++
			if s[i] == 'n' {
				b.WriteByte('\n')
			} else {
				b.WriteByte(s[i])
			}
		default:
			b.WriteByte(s[i])
		}
	}
	return "", false
}
