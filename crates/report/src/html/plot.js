// Intervals, drawn.

const WIDTH = 180, HEIGHT = 18, MARGIN = 5;

function svg(tag, properties, ...children) {
  const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(properties)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

/**
 * Draws a mean with its interval on a scale from `from` to `to`. `marks` are the positions of lines, such as the one
 * for no difference; `label` says the same in words. A mean that is not known is null, and is not drawn.
 */
function interval({ mean, range, from, to, marks, label, kind = '' }) {
  const x = (value) => MARGIN + (Math.min(Math.max(value, from), to) - from) / (to - from) * (WIDTH - 2 * MARGIN);
  const middle = HEIGHT / 2;
  const shapes = [svg('line', { class: 'axis', x1: x(from), x2: x(to), y1: middle, y2: middle })];
  for (const mark of marks) shapes.push(svg('line', { class: 'mark', x1: x(mark), x2: x(mark), y1: 2, y2: HEIGHT - 2 }));
  if (range) {
    const width = Math.max(x(range[1]) - x(range[0]), 1);
    shapes.push(svg('rect', { class: 'range', x: x(range[0]), y: middle - 3, width, height: 6, rx: 3 }));
  }
  if (mean !== null) shapes.push(svg('circle', { class: 'mean', cx: x(mean), cy: middle, r: 4 }));
  const view = { class: `plot ${kind}`, viewBox: `0 0 ${WIDTH} ${HEIGHT}`, width: WIDTH, height: HEIGHT };
  return svg('svg', { ...view, role: 'img', 'aria-label': label }, ...shapes);
}
