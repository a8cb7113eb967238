package post

func check(l *letter) error { weigh(l); return nil }
func retry(f func() error)  { _ = f() }
func done(l *letter)        { weigh(l) }

func (l *letter) textOf() string { return l.text }
