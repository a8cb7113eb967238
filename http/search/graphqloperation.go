package search

import "strings"

// isMutation reports whether the operation that is meant of a GraphQL document is a mutation: the only one, or the one of a name.
// It looks at what stands before the braces of each definition and at nothing else; what is no GraphQL is for others to refuse.
func isMutation(document, operationName string) bool {
	var only, named string
	count := 0
	for kind, name := range operations(document) {
		count++
		only = kind
		if name == operationName {
			named = kind
		}
	}
	if operationName == "" {
		return count == 1 && only == "mutation"
	}
	return named == "mutation"
}

// operations returns the kind and the name, where it has one, of each operation of a document.
func operations(document string) func(yield func(kind, name string) bool) {
	return func(yield func(kind, name string) bool) {
		depth := 0
		var head []string // the keyword and the name of the definition that is read
		for rest := document; rest != ""; {
			size := lexeme(rest)
			switch c := rest[0]; {
			case c == '{' && depth == 0:
				kind, name := "query", ""
				if len(head) > 0 {
					kind = head[0]
				}
				if len(head) > 1 {
					name = head[1]
				}
				if kind != "fragment" && !yield(kind, name) {
					return
				}
				head = nil
				depth++
			case c == '{' || c == '(' || c == '[':
				depth++
			case c == '}' || c == ')' || c == ']':
				depth = max(0, depth-1)
			}
			head = headWith(head, rest[:size], depth)
			rest = rest[size:]
		}
	}
}

// headWith adds a lexeme to what is known of a definition: its first two names, which nothing but names comes between.
func headWith(head []string, lexeme string, depth int) []string {
	switch {
	case depth == 0 && isNamePart(lexeme[0]) && len(head) < 2:
		return append(head, lexeme)
	case (lexeme[0] == '(' || lexeme[0] == '@') && len(head) == 1:
		return append(head, "")
	default:
		return head
	}
}

// lexeme returns how many bytes the first lexeme of a text has: a name or number, a string, a comment, or one character.
func lexeme(text string) int {
	switch c := text[0]; {
	case isNamePart(c):
		if end := strings.IndexFunc(text, func(c rune) bool { return c > '~' || !isNamePart(byte(c)) }); end > 0 {
			return end
		}
		return len(text)
	case c == '#':
		if end := strings.IndexAny(text, "\r\n"); end > 0 {
			return end
		}
		return len(text)
	case strings.HasPrefix(text, `"""`):
		return quoted(text, `"""`, `\"""`)
	case c == '"':
		return quoted(text, `"`, `\\`, `\"`)
	default:
		return 1
	}
}

// quoted returns how many bytes a string has that stands between two quotes, of which escapes are none.
func quoted(text, quote string, escapes ...string) int {
next:
	for at := len(quote); at < len(text); at++ {
		for _, escape := range escapes {
			if strings.HasPrefix(text[at:], escape) {
				at += len(escape) - 1
				continue next
			}
		}
		if strings.HasPrefix(text[at:], quote) {
			return at + len(quote)
		}
	}
	return len(text)
}

func isNamePart(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z'
}
