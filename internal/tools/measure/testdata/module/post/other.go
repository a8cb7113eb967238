package post

func weigh(l *letter)    { l.text += "." }
func refuse(l *letter)   { l.text = "" }
func unrelated(s string) { _ = s + "." }

type printer interface{ print(text string) }

type press struct{ office }

func (p *press) print(text string) { p.store(text) }
