package report

import (
	"fmt"
	"html"
	"math"
	"strings"
	"unicode/utf8"
)

// The dimensions of a plot, in pixels.
const (
	plotWidth   = 900
	valueWidth  = 140 // for the text at the end of a bar
	letterWidth = 7.4 // approximate width of a letter
	barHeight   = 18
	barPitch    = 28
	topMargin   = 58
	margin      = 16
)

// The colours of bars and text.
const (
	paddockColour = "#2563eb"
	peerColour    = "#94a3b8"
	ink           = "#0f172a"
	mutedInk      = "#64748b"
)

// A bar is one row of a plot.
type bar struct {
	label  string
	text   string // at the end of the bar
	parts  []part
	spread spread // of the total length
}

// A part of a bar.
type part struct {
	length float64
	colour string
}

// A plot consists of horizontal bars, with a legend if they have parts.
type plot struct {
	title, note string
	legend      []part // colours only
	names       []string
	bars        []bar
}

// svg draws the plot.
func (p plot) svg() string {
	height := topMargin + len(p.bars)*barPitch + margin
	var out strings.Builder
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" font-family="system-ui, 'DejaVu Sans', sans-serif" font-size="13" role="img">`+"\n",
		plotWidth, height, plotWidth, height)
	fmt.Fprintf(&out, "<title>%s</title>\n", html.EscapeString(p.title))
	fmt.Fprintf(&out, `<rect width="%d" height="%d" rx="6" fill="#ffffff"/>`+"\n", plotWidth, height)
	text(&out, margin, 24, "start", ink, `font-size="15" font-weight="600"`, p.title)
	text(&out, margin, 43, "start", mutedInk, "", p.note)
	p.drawLegend(&out)
	left := p.left()
	scale := float64(plotWidth-left-valueWidth) / p.longest()
	for i, b := range p.bars {
		b.draw(&out, left, topMargin+i*barPitch, scale)
	}
	out.WriteString("</svg>\n")
	return out.String()
}

// left returns the x position of the bars, right of the longest label.
func (p plot) left() int {
	most := 0
	for _, b := range p.bars {
		most = max(most, utf8.RuneCountInString(b.label))
	}
	return margin + int(float64(most)*letterWidth) + 10
}

// longest returns the greatest length of a bar or its spread.
func (p plot) longest() float64 {
	most := math.SmallestNonzeroFloat64
	for _, b := range p.bars {
		most = max(most, b.length(), b.spread.most)
	}
	return most
}

func (p plot) drawLegend(out *strings.Builder) {
	x := plotWidth - margin
	for i := len(p.legend) - 1; i >= 0; i-- {
		text(out, x, 43, "end", mutedInk, "", p.names[i])
		x -= 8*len(p.names[i]) + 8
		fmt.Fprintf(out, `<rect x="%d" y="32" width="12" height="12" fill="%s"/>`+"\n", x-12, p.legend[i].colour)
		x -= 28
	}
}

func (b bar) length() (sum float64) {
	for _, part := range b.parts {
		sum += part.length
	}
	return sum
}

func (b bar) draw(out *strings.Builder, left, y int, scale float64) {
	text(out, left-10, y+14, "end", ink, "", b.label)
	x := float64(left)
	for _, part := range b.parts {
		width := part.length * scale
		fmt.Fprintf(out, `<rect x="%.1f" y="%d" width="%.1f" height="%d" fill="%s"/>`+"\n", x, y, width, barHeight, part.colour)
		x += width
	}
	if b.spread.count > 1 {
		from, to := float64(left)+b.spread.least*scale, float64(left)+b.spread.most*scale
		middle := y + barHeight/2
		fmt.Fprintf(out, `<path d="M%.1f %dH%.1fM%.1f %dv8M%.1f %dv8" stroke="%s" stroke-width="1.5"/>`+"\n",
			from, middle, to, from, middle-4, to, middle-4, ink)
		x = max(x, to)
	}
	text(out, int(x)+8, y+14, "start", ink, "", b.text)
}

// text writes a text element.
func text(out *strings.Builder, x, y int, anchor, colour, more, content string) {
	fmt.Fprintf(out, `<text x="%d" y="%d" text-anchor="%s" fill="%s" %s>%s</text>`+"\n", x, y, anchor, colour, more, html.EscapeString(content))
}
