// Package post is a fixture: the path of a letter.
package post

import (
	"errors"
	"strings"

	"example.org/module/sorting"
)

type letter struct {
	text   string
	parts  *string
	closed bool
}

type base struct {
	bags   []string
	hidden int
}

func (b *base) store(s string) { b.bags = append(b.bags, s) }

type office struct {
	*base
	hidden  string
	printer printer
}

func (o *office) handle(l *letter) error {
	defer done(l)
	if l.closed { // a guard
		refuse(l)
		return errors.New("closed")
	}
	if l.parts != nil {
		refuse(l)
	}
	if err := check(l); err != nil {
		refuse(l)
	}
	switch err := check(l); {
	case err != nil:
		refuse(l)
	case l.text == "":
		weigh(l)
	default:
		refuse(l)
	}
	unrelated("other")
	retry(func() error { return o.print(l) })
	strings.Map(func(r rune) rune { weigh(l); return r }, "")
	sorting.Mark(&l.text)
	o.printer.print(l.textOf())
	return nil
}

func (o *office) print(l *letter) error { return check(l) }
