/** What people with a reader of the screen, the keyboard alone, or a small window meet on a page. */
import type { Page } from 'playwright-core';

/** Texts with less contrast than WCAG 2.1 §1.4.3 asks for: 4.5 to 1, or 3 to 1 where they are large. */
export const faintTexts = (page: Page): Promise<string[]> =>
  page.evaluate(() => {
    const parse = (colour: string) => {
      const [r = 0, g = 0, b = 0, a = 1] = (colour.match(/[\d.]+/g) ?? []).map(Number);
      const scale = colour.startsWith('color(srgb') ? 255 : 1;
      return [r * scale, g * scale, b * scale, a] as const;
    };
    const over = (top: readonly number[], under: readonly number[]) =>
      [0, 1, 2].map((at) => (top[at] ?? 0) * (top[3] ?? 1) + (under[at] ?? 0) * (1 - (top[3] ?? 1)));
    const ground = (element: Element | null): readonly number[] => {
      if (element === null) return matchMedia('(prefers-color-scheme: dark)').matches ? [18, 18, 18] : [255, 255, 255];
      const own = parse(getComputedStyle(element).backgroundColor);
      return own[3] === 1 ? own : over(own, ground(element.parentElement));
    };
    const light = (colour: readonly number[]) => {
      const [r = 0, g = 0, b = 0] = colour.map((each) => {
        const part = each / 255;
        return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
      });
      return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const ratio = (text: string, under: readonly number[]) => {
      const [one, other] = [light(over(parse(text), under)), light(under)];
      return (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
    };
    const faint = new Set<string>();
    const judge = (element: Element, colour: string, words: string) => {
      const { fontSize, fontWeight } = getComputedStyle(element);
      const size = Number.parseFloat(fontSize);
      const least = size >= 24 || (size >= 18.66 && Number(fontWeight) >= 700) ? 3 : 4.5;
      const found = ratio(colour, ground(element));
      if (found < least) faint.add(`${words.trim().slice(0, 30)}: ${found.toFixed(2)}`);
    };
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    for (let node = texts.nextNode(); node !== null; node = texts.nextNode()) {
      const { parentElement } = node;
      if (parentElement === null || (node.textContent ?? '').trim() === '') continue;
      if (parentElement.closest(':disabled, script, style, noscript, svg title, option, .hidden-text, .skip') !== null) continue;
      const { fill, color } = getComputedStyle(parentElement);
      judge(parentElement, parentElement instanceof SVGElement ? fill : color, node.textContent ?? '');
    }
    for (const field of document.querySelectorAll('[placeholder]'))
      judge(field, getComputedStyle(field, '::placeholder').color, field.getAttribute('placeholder') ?? '');
    return [...faint];
  });

/** What the accessibility tree of the browser has without a name: controls, pictures, regions. */
export async function nameless(page: Page): Promise<string[]> {
  const named = new Set(['button', 'link', 'textbox', 'searchbox', 'combobox', 'checkbox', 'slider', 'image', 'region']);
  const session = await page.context().newCDPSession(page);
  const { nodes } = await session.send('Accessibility.getFullAXTree');
  await session.detach();
  return nodes
    .filter(({ ignored, role, name }) => !ignored && named.has(String(role?.value)) && String(name?.value ?? '').trim() === '')
    .map(({ role }) => String(role?.value));
}

/** How many headings of the first level there are, and levels that were jumped over. */
export const headingsOf = (page: Page): Promise<{ readonly first: number; readonly jumps: string[] }> =>
  page.evaluate(() => {
    const found = [...document.querySelectorAll('h1, h2, h3, h4, h5, h6')].map((each) => ({
      level: Number(each.tagName.slice(1)),
      text: each.textContent ?? '',
    }));
    const jumps = found.filter(({ level }, at) => level > (found[at - 1]?.level ?? 1) + 1).map(({ text }) => text);
    return { first: found.filter(({ level }) => level === 1).length, jumps };
  });

/** How much wider the page is than its window, in pixels. */
export const overflowOf = (page: Page): Promise<number> =>
  page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);

/**
 * Goes through a page by Tab until it begins anew, at most `most` times. Returns what had the focus and could not be
 * seen: something lay over it, or nothing showed that it had the focus.
 */
export async function unseenFocus(page: Page, most: number): Promise<{ readonly stops: number; readonly unseen: string[] }> {
  const unseen: string[] = [];
  for (let stops = 0; stops < most; stops++) {
    await page.keyboard.press('Tab');
    const fault = await page.evaluate(async () => {
      // The browser scrolls to what has the focus by the next frame.
      await new Promise((drawn) => requestAnimationFrame(drawn));
      const { activeElement: held } = document;
      if (held === null || held === document.body) return 'end';
      const box = held.getBoundingClientRect();
      const middle = (from: number, until: number, size: number) => (Math.max(0, from) + Math.min(size, until)) / 2;
      const at = document.elementFromPoint(middle(box.left, box.right, innerWidth), middle(box.top, box.bottom, innerHeight));
      const { outlineStyle, outlineWidth } = getComputedStyle(held);
      // The browser marks the parts of such a field by itself.
      const hasParts = held instanceof HTMLInputElement && held.type === 'datetime-local';
      const isMarked = hasParts || (outlineStyle !== 'none' && Number.parseFloat(outlineWidth) >= 1);
      const isSeen = at !== null && (held.contains(at) || at.contains(held) || at.closest('label')?.contains(held) === true);
      return isSeen && isMarked ? '' : `${held.outerHTML.slice(0, 80)} marked: ${isMarked}, under: ${at?.outerHTML.slice(0, 40)}`;
    });
    if (fault === 'end') return { stops, unseen };
    if (fault !== '') unseen.push(fault);
  }
  return { stops: most, unseen };
}
