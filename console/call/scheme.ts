/** Colours for what is drawn on a canvas, which style sheets do not reach. */
import { useEffect, useState } from 'preact/hooks';

/** `dark` or `light`, as the reader's system has it now. */
export function useScheme(): 'dark' | 'light' {
  const [isDark, setDark] = useState(() => matchMedia('(prefers-color-scheme: dark)').matches);
  useEffect(() => {
    const media = matchMedia('(prefers-color-scheme: dark)');
    const look = () => setDark(media.matches);
    media.addEventListener('change', look);
    return () => media.removeEventListener('change', look);
  }, []);
  return isDark ? 'dark' : 'light';
}

/** The present value of a colour of the style sheet, by its name without dashes. */
export function colour(within: HTMLElement, name: string): string {
  const probe = document.createElement('span');
  probe.style.color = `var(--${name})`;
  within.append(probe);
  const value = getComputedStyle(probe).color;
  probe.remove();
  return value;
}
