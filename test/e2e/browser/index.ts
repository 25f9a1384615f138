export { launchChromium, openWindow } from './chromium';
export { docsPicture } from './docsPicture';
export { Editor } from './editor';
