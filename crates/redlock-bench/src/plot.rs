//! Bars of ratios to the floor, as SVG.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use crate::Failure;
use crate::contestant::Kind;
use crate::figures::Ratios;

/// Writes `cycles.svg` into the directory, which is made if need be.
pub(crate) fn write(directory: &Path, all: &[Ratios]) -> Result<(), Failure> {
    fs::create_dir_all(directory)?;
    let path = directory.join("cycles.svg");
    fs::write(&path, draw(all)?)?;
    println!("\ndrawn: {}", path.display());
    Ok(())
}

/// A title, and the figure.
type Panel = (&'static str, fn(&Ratios) -> f64);

/// A panel for each figure, in it two bars for each workload, and a line where the floor is.
fn draw(all: &[Ratios]) -> Result<String, Failure> {
    let who = [Kind::Redlock, Kind::Rslock];
    let names: Vec<&str> = all.iter().filter(|it| it.who == Kind::Redlock).map(|it| it.workload).collect();
    let panels: [Panel; 3] = [
        ("acquire p50: less is better", |it| it.acquire),
        ("cycles/s: more is better", |it| it.rate),
        ("client CPU per cycle: less is better", |it| it.cpu),
    ];
    let height = TOP + ROW * names.len() as f64 + 40.0;
    let width = LABELS + PANEL * panels.len() as f64;
    let mut svg = String::new();
    writeln!(
        svg,
        r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">"#
    )?;
    writeln!(svg, r##"<rect width="100%" height="100%" fill="#ffffff"/>"##)?;
    for (row, name) in names.iter().enumerate() {
        let y = TOP + ROW * row as f64 + 20.0;
        writeln!(svg, r#"<text x="{}" y="{y}" text-anchor="end">{name}</text>"#, LABELS - 8.0)?;
    }
    for (panel, (title, ratio)) in panels.into_iter().enumerate() {
        let x = LABELS + PANEL * panel as f64;
        writeln!(svg, r#"<text x="{x}" y="20" font-weight="bold">{title}</text>"#)?;
        for (row, name) in names.iter().enumerate() {
            for (bar, kind) in who.into_iter().enumerate() {
                let Some(ratios) = all.iter().find(|it| it.workload == *name && it.who == kind) else {
                    continue;
                };
                let y = TOP + ROW * row as f64 + 4.0 + 12.0 * bar as f64;
                draw_bar(&mut svg, x, y, ratio(ratios), color(kind))?;
            }
        }
        let (floor, bottom) = (x + UNIT, TOP + ROW * names.len() as f64);
        writeln!(
            svg,
            r##"<line x1="{floor}" y1="{TOP}" x2="{floor}" y2="{bottom}" stroke="#000000" stroke-dasharray="3 3"/>"##
        )?;
    }
    let y = height - 12.0;
    let mut x = LABELS;
    for (text, fill) in
        [("redlock", color(Kind::Redlock)), ("rslock", color(Kind::Rslock)), ("dashed: the floor", "none")]
    {
        writeln!(svg, r#"<rect x="{x}" y="{}" width="10" height="10" fill="{fill}"/>"#, y - 10.0)?;
        writeln!(svg, r#"<text x="{}" y="{y}">{text}</text>"#, x + 14.0)?;
        x += 90.0;
    }
    svg.push_str("</svg>\n");
    Ok(svg)
}

/// A bar with its figure. One that is too long for its panel is cut off; the figure is not.
fn draw_bar(svg: &mut String, x: f64, y: f64, ratio: f64, fill: &str) -> Result<(), Failure> {
    if !ratio.is_finite() {
        return Ok(());
    }
    let width = (ratio * UNIT).min(LONGEST);
    let more = if ratio * UNIT > LONGEST { " »" } else { "" };
    writeln!(svg, r#"<rect x="{x}" y="{y}" width="{width:.1}" height="11" fill="{fill}"/>"#)?;
    let (text_x, text_y) = (x + width + 4.0, y + 10.0);
    writeln!(svg, r#"<text x="{text_x:.1}" y="{text_y}" font-size="10">{ratio:.2}{more}</text>"#)?;
    Ok(())
}

const fn color(kind: Kind) -> &'static str {
    match kind {
        Kind::Floor => "#999999",
        Kind::Redlock => "#b03030",
        Kind::Rslock => "#6080a0",
    }
}

const TOP: f64 = 30.0;
const ROW: f64 = 34.0;
const LABELS: f64 = 170.0;
const PANEL: f64 = 270.0;
/// As long as the floor's bar would be.
const UNIT: f64 = 70.0;
const LONGEST: f64 = 2.8 * UNIT;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_contestant_has_a_bar_in_each_panel() {
        let ratios = |who, acquire| Ratios { workload: "alone", who, acquire, rate: 1.5, cpu: f64::NAN };
        let svg = draw(&[ratios(Kind::Redlock, 1.1), ratios(Kind::Rslock, 2484.0)]).unwrap();
        assert_eq!(svg.matches(r#"height="11""#).count(), 4, "there is none for what is not known");
        assert!(svg.contains(">1.10<") && svg.contains(">2484.00 »<"), "{svg}");
    }
}
